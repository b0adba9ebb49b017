"""The engines that execute plans."""
