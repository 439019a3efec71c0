// Requests to the local server: one answer, or a stream of lines.

async function refuse(response) {
  const said = await response.json().catch(() => ({}));
  throw new Error(said.error ?? `the server answered ${response.status}`);
}

async function send(path, body, signal) {
  const options = body === undefined ? { signal } : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal };
  try {
    return await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("the explorer does not answer; is 'pairmi explore' still running?");
  }
}

export async function ask(path, body, signal) {
  const response = await send(path, body, signal);
  if (!response.ok) await refuse(response);
  return response.json();
}

/** Calls `told` for every line but the last, whose result it returns. Aborting the signal stops the work on the server. */
export async function follow(path, body, signal, told) {
  const response = await send(path, body, signal);
  if (!response.ok) await refuse(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("the explorer stopped in the middle of its work");
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines.map((text) => JSON.parse(text))) {
      if (line.error) throw new Error(line.error);
      if (line.result) return line.result;
      told(line);
    }
  }
}

/** One task at a time: starting another aborts the one before; being aborted is no error. */
export function only() {
  let current = new AbortController();
  const run = async (work) => {
    current.abort();
    const mine = (current = new AbortController());
    try {
      return await work(mine.signal);
    } catch (error) {
      if (mine.signal.aborted) return undefined;
      throw error;
    }
  };
  run.abort = () => current.abort();
  return run;
}
