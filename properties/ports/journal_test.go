package ports

import (
	"hash/maphash"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// change is a call that changes files, as SQLite made it. A node is a file
// however it is named: one that is removed and made anew is another one.
type change struct {
	kind   changeKind
	node   int
	name   string // made, removed
	offset int64  // wrote
	data   []byte // wrote
	size   int64  // cut
	atOnce bool   // removed, synced: the folder is synced with it
}

type changeKind string

const (
	made    changeKind = "made"
	wrote   changeKind = "wrote"
	cut     changeKind = "cut"
	synced  changeKind = "synced"
	removed changeKind = "removed"
)

// folder is the content of files by name.
type folder map[string][]byte

// play makes the changes.
func play(changes []change) folder {
	nodes, names := map[int][]byte{}, map[string]int{}
	for _, c := range changes {
		content := nodes[c.node]
		switch c.kind {
		case made:
			names[c.name] = c.node
		case wrote:
			if end := int(c.offset) + len(c.data); end > len(content) {
				content = append(content, make([]byte, end-len(content))...)
			}
			copy(content[c.offset:], c.data)
			nodes[c.node] = content
		case cut:
			content = append(content[:min(c.size, int64(len(content)))], make([]byte, max(0, c.size-int64(len(content))))...)
			nodes[c.node] = content
		case removed:
			if names[c.name] == c.node {
				delete(names, c.name)
			}
		}
	}
	f := folder{}
	for name, node := range names {
		f[name] = nodes[node]
	}
	return f
}

// safe says of each change whether it outlives a loss of power: whether a sync
// of its file or, for names, of its folder came after it.
func safe(changes []change) []bool {
	list := make([]bool, len(changes))
	syncedLater, folderLater := map[int]bool{}, false
	for i, c := range slices.Backward(changes) {
		switch c.kind {
		case synced:
			syncedLater[c.node] = true
			folderLater = folderLater || c.atOnce
			list[i] = true
		case removed:
			folderLater = folderLater || c.atOnce
			list[i] = folderLater
		case made:
			list[i] = folderLater
		default:
			list[i] = syncedLater[c.node]
		}
	}
	return list
}

// lives says what is left of a change that was not safe when the power went:
// nothing, all of it, or some sectors of a write.
type lives func(of int, c change) []change

// afterPowerLoss is what is left of the changes.
func afterPowerLoss(changes []change, left lives) (rest []change) {
	ok := safe(changes)
	unsafe := 0
	for i, c := range changes {
		if ok[i] {
			rest = append(rest, c)
			continue
		}
		rest = append(rest, left(unsafe, c)...)
		unsafe++
	}
	return rest
}

const sectorBytes = 512

// sectors is the part of a write that chosen keeps.
func (c change) sectors(chosen func() bool) (parts []change) {
	if c.kind != wrote {
		if chosen() {
			return []change{c}
		}
		return nil
	}
	for start := 0; start < len(c.data); {
		end := min(len(c.data), start+sectorBytes-int(c.offset+int64(start))%sectorBytes)
		if chosen() {
			parts = append(parts, change{kind: wrote, node: c.node, offset: c.offset + int64(start), data: c.data[start:end]})
		}
		start = end
	}
	return parts
}

// write puts the files into a new folder. The index of the WAL need not
// survive, so it is garbage.
func (f folder) write(t testing.TB, parent string) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "")
	if err != nil {
		t.Fatal(err)
	}
	garbage := make([]byte, 32<<10)
	for i := range garbage {
		garbage[i] = byte(i*7 + 1)
	}
	files := maps.Clone(f)
	files["log.db-shm"] = garbage
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var hashSeed = maphash.MakeSeed()

// sum tells folders apart.
func (f folder) sum() (sum uint64) {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		var h maphash.Hash
		h.SetSeed(hashSeed)
		h.WriteString(name)
		h.Write(f[name])
		sum = sum*31 + h.Sum64()
	}
	return sum
}
