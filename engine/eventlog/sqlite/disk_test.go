package sqlite

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// disk is a VFS over the real one: it counts the syncs that SQLite asks for,
// and fails what a test tells it to fail. It is how these tests know what
// reached the disk instead of what the code says it did.
type disk struct {
	name string

	walSyncs, fileSyncs atomic.Int64

	// Each is a result code of SQLite; 0 lets the call through.
	openFails, walWriteFails atomic.Int32
	// These fail the next call alone.
	walSyncFailsOnce, lockFailsOnce atomic.Int32
}

var disks struct {
	sync.Mutex
	made    int
	byVFS   map[uintptr]*disk
	byFile  map[uintptr]openFile
	methods map[uintptr]uintptr // of the real VFS, to those with our calls
}

// openFile is what is known of a file handle of SQLite.
type openFile struct {
	*disk
	wal     bool
	methods *sqlite3.Tsqlite3_io_methods // the real ones
}

func newDisk(t testing.TB) *disk {
	tls := libc.NewTLS()
	defer tls.Close()
	disks.Lock()
	defer disks.Unlock()
	if disks.byVFS == nil {
		disks.byVFS = map[uintptr]*disk{}
		disks.byFile = map[uintptr]openFile{}
		disks.methods = map[uintptr]uintptr{}
	}
	disks.made++
	d := &disk{name: fmt.Sprintf("disk%d", disks.made)}
	vfs := malloc(tls, unsafe.Sizeof(sqlite3.Tsqlite3_vfs{}))
	name, err := libc.CString(d.name)
	if err != nil {
		t.Fatal(err)
	}
	v := at[sqlite3.Tsqlite3_vfs](vfs)
	*v = *realVFS(tls)
	v.FpNext = 0
	v.FzName = name
	v.FxOpen = pointer(diskOpen)
	disks.byVFS[vfs] = d
	if rc := sqlite3.Xsqlite3_vfs_register(tls, vfs, 0); rc != sqlite3.SQLITE_OK {
		t.Fatalf("register the VFS: %d", rc)
	}
	return d
}

func realVFS(tls *libc.TLS) *sqlite3.Tsqlite3_vfs {
	return at[sqlite3.Tsqlite3_vfs](sqlite3.Xsqlite3_vfs_find(tls, 0))
}

func diskOpen(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32 {
	disks.Lock()
	d := disks.byVFS[vfs]
	disks.Unlock()
	if rc := d.openFails.Load(); rc != 0 {
		at[sqlite3.Tsqlite3_file](file).FpMethods = 0
		return rc
	}
	open := call[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](realVFS(tls).FxOpen)
	if rc := open(tls, vfs, name, file, flags, out); rc != sqlite3.SQLITE_OK {
		return rc
	}
	disks.Lock()
	defer disks.Unlock()
	f := at[sqlite3.Tsqlite3_file](file)
	ours, ok := disks.methods[f.FpMethods]
	if !ok {
		ours = malloc(tls, unsafe.Sizeof(sqlite3.Tsqlite3_io_methods{}))
		m := at[sqlite3.Tsqlite3_io_methods](ours)
		*m = *at[sqlite3.Tsqlite3_io_methods](f.FpMethods)
		m.FxClose = pointer(diskClose)
		m.FxWrite = pointer(diskWrite)
		m.FxSync = pointer(diskSync)
		m.FxShmLock = pointer(diskLock)
		disks.methods[f.FpMethods] = ours
	}
	disks.byFile[file] = openFile{
		disk:    d,
		wal:     flags&sqlite3.SQLITE_OPEN_WAL != 0,
		methods: at[sqlite3.Tsqlite3_io_methods](f.FpMethods),
	}
	f.FpMethods = ours
	return sqlite3.SQLITE_OK
}

func known(file uintptr) openFile {
	disks.Lock()
	defer disks.Unlock()
	return disks.byFile[file]
}

func diskClose(tls *libc.TLS, file uintptr) int32 {
	f := known(file)
	disks.Lock()
	delete(disks.byFile, file)
	disks.Unlock()
	return call[func(*libc.TLS, uintptr) int32](f.methods.FxClose)(tls, file)
}

func diskWrite(tls *libc.TLS, file, data uintptr, n int32, offset int64) int32 {
	f := known(file)
	if rc := f.walWriteFails.Load(); rc != 0 && f.wal {
		return rc
	}
	return call[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](f.methods.FxWrite)(tls, file, data, n, offset)
}

func diskSync(tls *libc.TLS, file uintptr, flags int32) int32 {
	f := known(file)
	if f.wal {
		f.walSyncs.Add(1)
		if rc := f.walSyncFailsOnce.Swap(0); rc != 0 {
			return rc
		}
	} else {
		f.fileSyncs.Add(1)
	}
	return call[func(*libc.TLS, uintptr, int32) int32](f.methods.FxSync)(tls, file, flags)
}

func diskLock(tls *libc.TLS, file uintptr, offset, n, flags int32) int32 {
	f := known(file)
	if flags&sqlite3.SQLITE_SHM_LOCK != 0 {
		if rc := f.lockFailsOnce.Swap(0); rc != 0 {
			return rc
		}
	}
	return call[func(*libc.TLS, uintptr, int32, int32, int32) int32](f.methods.FxShmLock)(tls, file, offset, n, flags)
}

// at is the C struct at address p, which the Go runtime does not manage.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// pointer is a declared function, not a closure, as a C function pointer, and
// call is the way back; see cFuncPointer in modernc.org/sqlite.
func pointer[T any](f T) uintptr { return *(*uintptr)(unsafe.Pointer(&struct{ f T }{f})) }

func call[T any](p uintptr) T { return *(*T)(unsafe.Pointer(&struct{ p uintptr }{p})) }

func malloc(tls *libc.TLS, n uintptr) uintptr {
	return libc.Xmalloc(tls, libc.Tsize_t(n))
}
