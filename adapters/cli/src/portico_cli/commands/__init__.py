"""The commands, one module each; each has its click command under the name ``command``."""
