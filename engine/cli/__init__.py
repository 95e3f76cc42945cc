"""The command line: one file per subcommand, and no Qt."""
