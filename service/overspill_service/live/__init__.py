"""Live captures, which grow: appends, segments, the end, and the view of readers.

    a producer's request     producing: begin, append, end; filling: an append so large that it is a segment
    the background           flusher, a task of each process: what is due becomes segments, or ends
                             segments, digests, ending, compaction: the steps of that work
    a reader's request       views: the entry with what is accepted
                             since, positions, timeline: from times to lines and bytes
                             stream, streams, events: followers; waiting: waits

Everything runs in the event loop of a serving process; what takes CPU goes to threads. Failures are those of
`overspill_service.errors`.
"""
