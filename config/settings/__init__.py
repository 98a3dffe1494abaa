"""The settings of the platform, from the environment, a module for each topic. `.env.example` lists all of them."""

from __future__ import annotations

from config.settings.agents import *
from config.settings.knowledge import *
from config.settings.memory import *
from config.settings.models import *
from config.settings.operations import *
from config.settings.servers import *
from config.settings.web import *
