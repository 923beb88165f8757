"""A demo centre: programs and a scheduler on a modelled file system (`vani demo centre`), and a real trace."""
