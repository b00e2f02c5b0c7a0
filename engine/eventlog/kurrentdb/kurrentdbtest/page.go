package kurrentdbtest

import "math"

// pageSize is how many events the server reads at a time for a call.
const pageSize = 32

// streamPage is a part of a stream as IndexReader gives it.
type streamPage struct {
	found   bool
	deleted bool // by a tombstone
	records []*record
	next    int64 // where the next page starts
	last    int64 // revision of the stream's newest event
	end     bool
}

func (v view) streamStart(stream string) (page streamPage, ok bool) {
	page.last = v.last(stream)
	page.deleted = page.last == deletedStream
	page.found = page.last != noStream && !v.softDeleted(stream)
	return page, page.found && !page.deleted
}

// collect takes the records from first to last that may be seen.
func (v view) collect(stream string, first, last int64) []*record {
	m := v.metadata(stream)
	var records []*record
	for revision := max(0, first); revision <= last; revision++ {
		if r := v.event(stream, revision); r != nil && !m.expired(r, v.s.now()) {
			records = append(records, r)
		}
	}
	return records
}

// forwards reads up to n events of a stream from a revision on.
func (v view) forwards(stream string, from int64, n int64) streamPage {
	page, ok := v.streamStart(stream)
	if !ok {
		return page
	}
	until := int64(math.MaxInt64)
	if from < math.MaxInt64-n {
		until = from + n - 1
	}
	lowest := v.lowest(stream)
	if until < lowest {
		page.next = lowest
		return page
	}
	if from = max(from, lowest); from > page.last {
		page.next, page.end = page.last+1, true
		return page
	}
	page.records = v.collect(stream, from, min(until, page.last))
	page.next = min(until+1, page.last+1)
	if len(page.records) > 0 {
		page.next = page.records[len(page.records)-1].Revision + 1
	}
	page.end = until >= page.last
	return page
}

// backwards reads up to n events of a stream down from a revision; -1 is its
// end.
func (v view) backwards(stream string, from int64, n int64) streamPage {
	page, ok := v.streamStart(stream)
	if !ok {
		return page
	}
	if from < 0 {
		from = page.last
	}
	first := max(0, from-n+1)
	lowest := v.lowest(stream)
	page.next = -1
	if from < lowest {
		page.end = true
		return page
	}
	if first <= lowest {
		page.end, first = true, lowest
	}
	ascending := v.collect(stream, first, min(from, page.last))
	for i := len(ascending) - 1; i >= 0; i-- {
		page.records = append(page.records, ascending[i])
	}
	lacks := len(ascending) == 0 || ascending[0].Revision != first
	page.end = page.end || first == 0 || first <= page.last && lacks
	if !page.end {
		page.next = min(first-1, page.last)
	}
	return page
}

// allPage is a part of $all as AllReader gives it.
type allPage struct {
	records    []*record
	current    position // where the page starts
	next       position // where the next page starts
	end        bool
	considered int64 // records looked at, whether the filter let them pass or not
}

// forwardsAll reads $all from a position on, that position included. It stops
// when it has n records or has looked at window of them. It fails in the middle
// of a record.
func (v view) forwardsAll(pos position, n int, window int64, allow filter) (allPage, bool) {
	page := allPage{current: pos, next: pos}
	if v.splits(pos.commit) {
		return page, false
	}
	for i := v.search(pos.commit); len(page.records) < n && page.considered < window; i++ {
		if i >= v.n {
			page.end = true
			break
		}
		r := v.s.records[i]
		if r.at().less(pos) || v.s.scavenged[r] {
			continue
		}
		page.considered++
		if allow(r) {
			page.records = append(page.records, r)
		}
		page.next = position{r.End, 0}
	}
	return page, true
}

// backwardsAll reads $all down from a position, that position excluded.
func (v view) backwardsAll(pos position, n int, window int64, allow filter) (allPage, bool) {
	page := allPage{current: pos, next: pos}
	if v.splits(pos.commit) {
		return page, false
	}
	for i := v.search(pos.commit) - 1; len(page.records) < n && page.considered < window; i-- {
		if i < 0 {
			page.end = true
			break
		}
		r := v.s.records[i]
		if pos.less(position{r.End, r.End}) || v.s.scavenged[r] {
			continue
		}
		page.considered++
		if allow(r) {
			page.records = append(page.records, r)
		}
		page.next = r.at()
	}
	return page, true
}
