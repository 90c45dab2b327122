"""What may not leave the machine: ignored files, and secrets inside text. Must not know where text goes."""

from __future__ import annotations

from completion.privacy.ignored import Ignored
from completion.privacy.policy import Policy
from completion.privacy.redactor import Redactor, put_back, redact
from completion.privacy.stand_ins import StandIn

__all__ = ["Ignored", "Policy", "Redactor", "StandIn", "put_back", "redact"]
