package crmsim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	readHeaderTimeout = 10 * time.Second
	drainMax          = 5 * time.Second
)

// Serve answers on the listener until the context ends, then lets late effects happen, finishes the
// running requests within 5 s and returns nil. It owns the listener, refuses one that is not loopback
// unless Config.AllowRemote, and ends with an error when the journal can no longer be written. It may
// be called once; Close is still the caller's.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	if err := s.checkLocal(listener.Addr()); err != nil {
		_ = listener.Close()
		return err
	}
	web := &http.Server{
		Handler: s, ReadHeaderTimeout: readHeaderTimeout,
		ErrorLog: log.New(io.Discard, "", 0), // cut connections are no news here
	}
	_, canReopen := listener.(*net.TCPListener)
	s.setServing(canReopen)
	defer s.setServing(false)

	var accepting sync.WaitGroup
	defer accepting.Wait()
	err := s.keepServing(ctx, web, listener, &accepting)
	s.release()
	return errors.Join(err, drain(web))
}

// keepServing goes through the times between outages.
func (s *Server) keepServing(ctx context.Context, web *http.Server, listener net.Listener, accepting *sync.WaitGroup) error {
	for {
		ended := make(chan error, 1)
		current := listener
		accepting.Go(func() { ended <- web.Serve(current) })
		select {
		case <-ctx.Done():
			return nil
		case <-s.failed:
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.broken
		case err := <-ended:
			return fmt.Errorf("crmsim: serve %s: %w", current.Addr(), err)
		case o := <-s.outages:
			next, err := s.suffer(ctx, web, current, ended, o)
			if err != nil || next == nil {
				return err
			}
			listener = next
		}
	}
}

// suffer is one outage. It returns the listener that ends it, or nil when the context ended first.
func (s *Server) suffer(
	ctx context.Context, web *http.Server, listener net.Listener, accepted <-chan error, o outage,
) (net.Listener, error) {
	defer close(o.ended)
	s.setDown(true)
	defer s.setDown(false)
	_ = listener.Close()
	<-accepted                      // else web may close the listener a second time, which is an error
	web.SetKeepAlivesEnabled(false) // closes the idle ones too
	defer web.SetKeepAlivesEnabled(true)
	close(o.begun)
	select {
	case <-s.config.After(o.length):
	case <-ctx.Done():
		return nil, nil
	}
	next, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listener.Addr().String())
	if err != nil {
		return nil, fmt.Errorf("crmsim: listen again after an outage: %w", err)
	}
	return next, nil
}

func drain(web *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainMax)
	defer cancel()
	if err := web.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("crmsim: stop within %v: %w", drainMax, err), web.Close())
	}
	return nil
}

func (s *Server) checkLocal(addr net.Addr) error {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || tcp.IP.IsLoopback() || s.config.AllowRemote {
		return nil
	}
	return fmt.Errorf("crmsim: %s is not loopback: listen on 127.0.0.1, or allow others (AllowRemote, --allow-remote)", addr)
}

func (s *Server) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func (s *Server) setServing(serving bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving = serving
}
