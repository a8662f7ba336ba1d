"""What is minimised: losses, regularisers, constraints, smoothers and the problem they make together."""
