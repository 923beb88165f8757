"""A demo centre: programs and a scheduler on a modelled file system (`vani centre demo`), and a real trace."""
