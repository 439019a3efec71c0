"""The libraries that people already decode with, one file each; each is imported when it is asked for."""
