//go:build !linux

package main

func (s *site) smallDisk(string) {
	s.t.Helper()
	s.t.Skip("this test mounts a small file system, which needs root on Linux")
}
