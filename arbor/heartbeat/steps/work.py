"""Continue the actions that need calls: inquiries first, then calls of tools."""

from __future__ import annotations

from arbor.heartbeat.needs import EndedCall
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps.inquiries import InquiryWork
from arbor.heartbeat.steps.tool_calls import finish_tool_call, suspend_on_tool
from arbor.pipeline.engine import NodeResult, Steps


class PendingWork:
    """Continues what the actions have begun; runs again while `work_left` is above 0."""

    _inquiries = InquiryWork()

    def __call__(self, heartbeat: HeartbeatState) -> NodeResult[HeartbeatState]:
        """Suspend on the next call."""
        if not heartbeat.work and heartbeat.tool_calls:
            return suspend_on_tool(heartbeat)
        return self._inquiries(heartbeat)

    def resume(self, heartbeat: HeartbeatState, result: EndedCall) -> Steps[HeartbeatState]:
        """Continue with the result of the call."""
        if heartbeat.work:
            return (yield from self._inquiries.resume(heartbeat, result))
        return (yield from finish_tool_call(heartbeat, result))
