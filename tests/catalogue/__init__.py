"""How right the catalogue of rules is about traces of which we know what the programs did."""
