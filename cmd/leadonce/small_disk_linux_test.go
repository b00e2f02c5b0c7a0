package main

import (
	"os"
	"syscall"
)

// smallDisk puts the data folder on a file system of its own.
func (s *site) smallDisk(size string) {
	s.t.Helper()
	if err := os.Mkdir(s.path("data"), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", s.path("data"), "tmpfs", 0, "mode=0700,size="+size); err != nil {
		s.t.Skipf("this test mounts a small file system, which needs root on Linux: %v", err)
	}
	s.t.Cleanup(func() {
		if err := syscall.Unmount(s.path("data"), syscall.MNT_DETACH); err != nil {
			s.t.Error(err)
		}
	})
}
