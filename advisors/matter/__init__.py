"""Does I/O matter in this run at all?"""
