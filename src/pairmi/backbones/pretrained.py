"""Reading what `transformers` can read, from a folder or from the model hub; whatever fails, fails in one clear line."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from safetensors import SafetensorError

from pairmi.types import PairmiError

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+(?<!\.safetensors)")
READING = (OSError, ValueError, KeyError, TypeError, RuntimeError, ImportError, AttributeError)  # what foreign files and code raise
COMMIT = re.compile(r"[0-9a-f]{40}")
UNUSED = ("contact_head", "pooler")  # parts of a network that predict no symbols


def readable(name: str) -> bool:
    """Whether this can be the name of a masked language model: an existing folder, or a hub id (owner/name)."""
    return Path(name).is_dir() or (HUB_ID.fullmatch(name) is not None and not Path(name).is_file())


def library(source: str) -> Any:
    """The package `transformers`, imported when the first model needs it."""
    try:
        import transformers
    except ImportError:
        found = "none"
    else:
        found = transformers.__version__
        if tuple(int(part) for part in found.split(".")[:2]) >= (5, 22):
            return transformers
    raise PairmiError(f"load: {source!r} needs transformers >= 5.22, found {found}; pip install 'pairmi[protein]'")


@contextmanager
def reading(source: str) -> Iterator[Any]:
    """Lend `transformers`, quietly; what it raises about a model that it cannot read becomes one line."""
    transformers = library(source)
    if Path(source).is_dir() and not (Path(source) / "config.json").is_file():
        raise PairmiError(f"load: the folder {source} holds no model of transformers: it has no config.json")
    from huggingface_hub.errors import StrictDataclassError

    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    if Path(source).is_dir():  # a download may take long and shows how far it is
        logging.disable_progress_bar()
    try:
        yield transformers
    except UnpicklingError as error:
        raise PairmiError(f"load: the weights of {source} are damaged or hold more than tensors; get them as safetensors") from error
    except PairmiError:
        raise
    except (*READING, SafetensorError, StrictDataclassError) as error:
        raise PairmiError(_in_one_line(source, error)) from error
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def told(error: Exception) -> str:
    """The first line of what an error says."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")[:200]


def _in_one_line(source: str, error: Exception) -> str:
    if Path(source).is_dir():
        return f"load: cannot read the folder {source} as a masked language model ({told(error)})"
    remedy = f"where there is a network: hf download {source} --local-dir FOLDER; then load FOLDER"
    return f"load: cannot get {source!r} from the model hub ({_why(error)}); {remedy}"


def _why(error: Exception) -> str:
    """Why something did not come from the hub."""
    from huggingface_hub import constants

    return "HF_HUB_OFFLINE is set and it is not in the cache" if constants.HF_HUB_OFFLINE else told(error)


def read_kind(source: str, allow_code: bool = False, revision: str | None = None) -> str:
    """The architecture, such as "esm" or "bert"; refuses one that brings its own code, unless that was allowed."""
    with reading(source) as transformers:
        config = transformers.PretrainedConfig.get_config_dict(source, revision=revision)[0]
        kind = config.get("model_type")
        own = "auto_map" in config and kind not in transformers.CONFIG_MAPPING
        if not own:
            kind = transformers.AutoConfig.from_pretrained(source, trust_remote_code=False, revision=revision).model_type
    if own and not allow_code:
        raise PairmiError(
            f"load: {source} ({kind}) brings its own Python code, which could do whatever you can; "
            "read it, then load(..., allow_code=True), or --allow-code"
        )
    if own and not Path(source).is_dir() and not COMMIT.fullmatch(revision or ""):
        raise PairmiError(f"load: code of {source} runs only as it was read: give revision=COMMIT (40 hexadecimal digits), or a folder")
    return str(kind)


def read_network(
    source: str, attention: bool = False, loader: str = "AutoModelForMaskedLM", allow_code: bool = False, revision: str | None = None
) -> Any:
    """The network with all its weights, in float32; with `attention`, such that it can report attention weights."""
    with reading(source) as transformers:
        network, report = getattr(transformers, loader).from_pretrained(
            source,
            dtype=torch.float32,
            attn_implementation="eager" if attention else None,
            weights_only=True,
            trust_remote_code=allow_code,
            revision=revision,
            output_loading_info=True,
        )
    missing = sorted(name for name in report["missing_keys"] if not any(part in name for part in UNUSED))
    if missing:
        raise PairmiError(
            f"load: {source} has no weights for {missing[0]} ({len(missing)} missing in all); it is not a whole masked language model"
        )
    return network


def file_of(source: str | Path, file: str, what: str) -> Path:
    """Where a file is: `source` itself if it is one, else in that folder, else fetched from the hub's owner/name or owner/name@revision.

    Nothing but this file is fetched; what was fetched before is found without a network.
    """
    place = Path(source)
    if place.is_dir():
        if not (place / file).is_file():
            raise PairmiError(f"{what}: the folder {source} has no {file}")
        return place / file
    name, _, revision = str(source).partition("@")
    if place.is_file() or HUB_ID.fullmatch(name) is None or place.suffix == Path(file).suffix:
        return place
    try:
        from huggingface_hub import errors, hf_hub_download
    except ImportError:
        raise PairmiError(f"{what}: {name!r} is on the model hub; pip install 'pairmi[hub]', or give a file or a folder") from None
    try:
        return Path(hf_hub_download(name, file, revision=revision or None))
    except errors.RevisionNotFoundError:
        raise PairmiError(f"{what}: {name!r} has no revision {revision!r} on the model hub") from None
    except errors.RemoteEntryNotFoundError:
        raise PairmiError(f"{what}: {name!r} has no {file} on the model hub (other formats are not read)") from None
    except errors.RepositoryNotFoundError:
        raise PairmiError(f"{what}: the model hub has no {name!r}, or it is private and you are not logged in") from None
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled, errors.HfHubHTTPError, OSError) as error:
        raise PairmiError(f"{what}: cannot get {name!r} from the model hub ({_why(error)}); give a file or a folder") from error
