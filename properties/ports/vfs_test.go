package ports

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// recorder writes down each call that changes a file of one folder, in order,
// and fails those that a test tells it to fail. Its files are real ones, but a
// sync is only written down: nobody pulls the plug of this machine.
type recorder struct {
	dir     string
	opening sync.Mutex // files are opened one after the other

	mu      sync.Mutex
	changes []change
	nodes   map[string]int // by name
	made    int
	calls   int
	fails   func(n int, c change) failure // of the call numbered n; nil: nothing fails
	blind   bool                          // a disk that forgets to sync
}

// failure is what becomes of a call instead.
type failure int

const (
	works   failure = iota
	refused         // not done
	torn            // a first part is done
)

var errUnknownFile = errors.New("a file that was there before its recorder")

// recorders are by folder, open files by SQLite's handle.
var recorders struct {
	sync.Mutex
	byDir   map[string]*recorder
	byFile  map[uintptr]recordedFile
	real    *sqlite3.Tsqlite3_vfs
	methods map[uintptr]uintptr // of the real VFS, to those with our calls
}

type recordedFile struct {
	*recorder
	node    int
	beside  bool                         // a WAL or journal, which this handle has not synced yet
	methods *sqlite3.Tsqlite3_io_methods // the real ones
}

// newRecorder records what happens to the log in a folder. The changes are
// those by which its files came to be what they are.
func newRecorder(dir string, changes []change) *recorder {
	r := &recorder{dir: dir, nodes: map[string]int{}}
	if changes == nil { // the log makes its file durably, before SQLite sees it
		changes = []change{{kind: made, node: 1, name: "log.db"}, {kind: synced, node: 1, atOnce: true}}
	}
	r.changes = append(r.changes, changes...)
	for _, c := range changes {
		r.made = max(r.made, c.node)
		switch c.kind {
		case made:
			r.nodes[c.name] = c.node
		case removed:
			if r.nodes[c.name] == c.node {
				delete(r.nodes, c.name)
			}
		}
	}
	recorders.Lock()
	defer recorders.Unlock()
	recorders.byDir[dir] = r
	return r
}

// forget ends the recording; all files of the folder are closed.
func (r *recorder) forget() {
	recorders.Lock()
	defer recorders.Unlock()
	delete(recorders.byDir, r.dir)
}

// now is how many calls were made.
func (r *recorder) now() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.changes)
}

// do makes a call and writes it down, in one step: so the order is the true one.
func (r *recorder) do(c change, refusal int32, f func(c change) int32) int32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	if r.fails != nil {
		switch r.fails(r.calls, c) {
		case refused:
			return refusal
		case torn:
			if c.kind != wrote || len(c.data) < 2 {
				return refusal
			}
			c.data = c.data[:len(c.data)/2]
			if rc := f(c); rc == sqlite3.SQLITE_OK {
				r.changes = append(r.changes, c)
			}
			return refusal
		}
	}
	rc := f(c)
	if rc == sqlite3.SQLITE_OK && !(r.blind && c.kind == synced) {
		r.changes = append(r.changes, c)
	}
	return rc
}

// useRecordingVFS puts it in the place of SQLite's default. Files outside of a
// recorded folder are the real VFS's.
func useRecordingVFS() {
	recorders.byDir = map[string]*recorder{}
	recorders.byFile = map[uintptr]recordedFile{}
	recorders.methods = map[uintptr]uintptr{}
	tls := libc.NewTLS()
	defer tls.Close()
	recorders.real = at[sqlite3.Tsqlite3_vfs](sqlite3.Xsqlite3_vfs_find(tls, 0))
	vfs := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_vfs{})))
	name, err := libc.CString("recording")
	if err != nil {
		panic(err)
	}
	v := at[sqlite3.Tsqlite3_vfs](vfs)
	*v = *recorders.real
	v.FpNext, v.FzName = 0, name
	v.FxOpen, v.FxDelete = pointer(vfsOpen), pointer(vfsDelete)
	if rc := sqlite3.Xsqlite3_vfs_register(tls, vfs, 1); rc != sqlite3.SQLITE_OK {
		panic("the VFS was not registered")
	}
}

// recorderOf is of the folder that the file is in; nil if nobody records it.
func recorderOf(name uintptr) (r *recorder, base string) {
	if name == 0 {
		return nil, "" // a temporary file
	}
	path := libc.GoString(name)
	recorders.Lock()
	defer recorders.Unlock()
	return recorders.byDir[filepath.Dir(path)], filepath.Base(path)
}

func vfsOpen(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32 {
	open := native[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](recorders.real.FxOpen)
	r, base := recorderOf(name)
	if r == nil {
		return open(tls, vfs, name, file, flags, out)
	}
	r.opening.Lock()
	defer r.opening.Unlock()
	r.mu.Lock()
	node, known := r.nodes[base]
	r.mu.Unlock()
	rc := int32(sqlite3.SQLITE_OK)
	if _, err := os.Stat(filepath.Join(r.dir, base)); known {
		rc = open(tls, vfs, name, file, flags, out)
	} else if err == nil {
		panic(errUnknownFile)
	} else {
		at[sqlite3.Tsqlite3_file](file).FpMethods = 0 // nothing to close, if it is refused
		c := change{kind: made, name: base, node: r.made + 1}
		if flags&sqlite3.SQLITE_OPEN_CREATE == 0 {
			return open(tls, vfs, name, file, flags, out)
		}
		rc = r.do(c, sqlite3.SQLITE_CANTOPEN, func(change) int32 {
			rc := open(tls, vfs, name, file, flags, out)
			if rc == sqlite3.SQLITE_OK {
				r.made++
				r.nodes[base] = r.made
				node = r.made
			}
			return rc
		})
	}
	if rc == sqlite3.SQLITE_OK {
		beside := flags & (sqlite3.SQLITE_OPEN_WAL | sqlite3.SQLITE_OPEN_MAIN_JOURNAL)
		watch(file, recordedFile{recorder: r, node: node, beside: beside != 0 && flags&sqlite3.SQLITE_OPEN_CREATE != 0})
	}
	return rc
}

// watch puts our calls before those of an open file.
func watch(file uintptr, watched recordedFile) {
	tls := libc.NewTLS()
	defer tls.Close()
	recorders.Lock()
	defer recorders.Unlock()
	f := at[sqlite3.Tsqlite3_file](file)
	ours, ok := recorders.methods[f.FpMethods]
	if !ok {
		ours = libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_io_methods{})))
		m := at[sqlite3.Tsqlite3_io_methods](ours)
		*m = *at[sqlite3.Tsqlite3_io_methods](f.FpMethods)
		m.FxClose, m.FxWrite, m.FxTruncate, m.FxSync = pointer(fileClose), pointer(fileWrite), pointer(fileTruncate), pointer(fileSync)
		recorders.methods[f.FpMethods] = ours
	}
	watched.methods = at[sqlite3.Tsqlite3_io_methods](f.FpMethods)
	recorders.byFile[file] = watched
	f.FpMethods = ours
}

func vfsDelete(tls *libc.TLS, vfs, name uintptr, syncFolder int32) int32 {
	remove := native[func(*libc.TLS, uintptr, uintptr, int32) int32](recorders.real.FxDelete)
	r, base := recorderOf(name)
	if r == nil {
		return remove(tls, vfs, name, syncFolder)
	}
	r.mu.Lock()
	node, known := r.nodes[base]
	r.mu.Unlock()
	if !known {
		return remove(tls, vfs, name, syncFolder)
	}
	return r.do(change{kind: removed, node: node, name: base, atOnce: syncFolder != 0}, sqlite3.SQLITE_IOERR_DELETE, func(change) int32 {
		rc := remove(tls, vfs, name, 0)
		if rc == sqlite3.SQLITE_OK {
			delete(r.nodes, base)
		}
		return rc
	})
}

func opened(file uintptr) recordedFile {
	recorders.Lock()
	defer recorders.Unlock()
	return recorders.byFile[file]
}

func fileClose(tls *libc.TLS, file uintptr) int32 {
	f := opened(file)
	recorders.Lock()
	delete(recorders.byFile, file)
	recorders.Unlock()
	return native[func(*libc.TLS, uintptr) int32](f.methods.FxClose)(tls, file)
}

func fileWrite(tls *libc.TLS, file, data uintptr, n int32, offset int64) int32 {
	f := opened(file)
	content := append([]byte(nil), unsafe.Slice(at[byte](data), n)...)
	return f.do(change{kind: wrote, node: f.node, offset: offset, data: content}, sqlite3.SQLITE_IOERR_WRITE, func(c change) int32 {
		write := native[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](f.methods.FxWrite)
		return write(tls, file, data, int32(len(c.data)), offset)
	})
}

func fileTruncate(tls *libc.TLS, file uintptr, size int64) int32 {
	f := opened(file)
	return f.do(change{kind: cut, node: f.node, size: size}, sqlite3.SQLITE_IOERR_TRUNCATE, func(change) int32 {
		return native[func(*libc.TLS, uintptr, int64) int32](f.methods.FxTruncate)(tls, file, size)
	})
}

func fileSync(_ *libc.TLS, file uintptr, _ int32) int32 {
	f := opened(file)
	recorders.Lock()
	again := f
	again.beside = false
	recorders.byFile[file] = again
	recorders.Unlock()
	return f.do(change{kind: synced, node: f.node, atOnce: f.beside}, sqlite3.SQLITE_IOERR_FSYNC, func(change) int32 { return sqlite3.SQLITE_OK })
}

// at is the C struct at address p, which the Go runtime does not manage.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// pointer is a declared function, not a closure, as a C function pointer, and
// native is the way back; see cFuncPointer in modernc.org/sqlite.
func pointer[T any](f T) uintptr { return *(*uintptr)(unsafe.Pointer(&struct{ f T }{f})) }

func native[T any](p uintptr) T { return *(*T)(unsafe.Pointer(&struct{ p uintptr }{p})) }
