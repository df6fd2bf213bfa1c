"""The paper's experiments on this engine, against the engines that it compares with."""
