"""Tables in SQL databases that outlive a command: interactions with files, runs."""
