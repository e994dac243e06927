"""The producer's part of live captures: an output that is stored while it is being written.

What goes over the network is behind the protocols in `ports`; this package knows no HTTP.

    LiveCapture              any coroutine of one event loop; the two tasks of its `Producer` run there too
    SyncLiveCapture, files   any thread; the process's loop thread sends
    capture_process          a coroutine, beside the `LiveCapture` that it writes to
    Resender                 a coroutine of its owner: streams that pass a guard are sent in the loop thread

The way of a write: `LiveCapture.write` ─► `PendingWrites`, masked ─► `Unstored` ─► `Sender` ─► the service.
"""
