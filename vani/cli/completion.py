"""`vani completion`: shell completion of commands and options."""

from __future__ import annotations

import click

from vani.cli.output import emit


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Write the completion script for a shell.

    For bash: vani completion bash > ~/.local/share/bash-completion/completions/vani. For zsh, write to a file _vani
    in a folder of fpath; for fish, to ~/.config/fish/completions/vani.fish.
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - wanted only here

    completion_class = get_completion_class(shell)
    assert completion_class is not None
    emit(completion_class(ctx.find_root().command, {}, "vani", "_VANI_COMPLETE").source() + "\n", None)
