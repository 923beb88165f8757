"""Running a command under a tracer: Recorder if it is installed, otherwise strace."""
