"""The options of text models: how they are read, and texts to be continued."""

from argparse import ArgumentParser

from pairmi.commands.arguments import positive


def add_tokenizer(parser: ArgumentParser) -> None:
    """What `load` takes for models of text."""
    text = parser.add_argument_group("models of text")
    text.add_argument("--tokenizer", help="another than the model's own: a folder, or the name of a class of transformers")
    text.add_argument("--allow-code", action="store_true", help="run the Python code that a model brings; read it first")
    text.add_argument("--revision", help="the commit of a model on the hub: needed with --allow-code, unless it is a folder")


def add_prompt(parser: ArgumentParser) -> None:
    """What `decode` takes for texts to be continued; --canvas or --prompt is required."""
    parser.add_argument("--prompt", help="in place of --canvas: a text to be continued, a file with one a line (or JSON lines), or -")
    parser.add_argument("--new-tokens", type=positive, default=32, help="with --prompt: how many tokens are added")
    parser.add_argument("--chat", action="store_true", help="with --prompt: put it as a question, by the model's chat template")
    parser.add_argument("--stop", help="the symbol that ends a sequence, such as <|endoftext|>; what is behind is dropped")
