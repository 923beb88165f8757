"""The server behind `vani mcp`: which folders it reads, the text of its answers, and its tools."""
