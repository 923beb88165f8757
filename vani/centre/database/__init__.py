"""Tables in SQL databases that persist across commands: interactions with files, and runs."""
