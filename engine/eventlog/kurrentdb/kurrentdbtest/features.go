package kurrentdbtest

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/google/uuid"
)

// instance names this node in gossip; nobody compares it.
var instance = uuid.MustParse("6a1f3f6e-0c3f-4c5e-9d57-0a4f2f6e7d10")

// GetSupportedMethods lists what this server serves.
func (s *Server) GetSupportedMethods(context.Context, *shared.Empty) (*serverfeatures.SupportedMethods, error) {
	const service = "event_store.client.streams.streams"
	return &serverfeatures.SupportedMethods{
		EventStoreServerVersion: s.opts.Version,
		Methods: []*serverfeatures.SupportedMethod{
			{ServiceName: service, MethodName: "read", Features: []string{"position", "events"}},
			{ServiceName: service, MethodName: "append"},
			{ServiceName: service, MethodName: "delete"},
			{ServiceName: service, MethodName: "tombstone"},
			{ServiceName: "event_store.client.server_features.serverfeatures", MethodName: "getsupportedmethods"},
			{ServiceName: "event_store.client.gossip.gossip", MethodName: "read"},
		},
	}, nil
}

// Read of Gossip shows a cluster of this node alone, its leader.
func (s *gossipService) Read(context.Context, *shared.Empty) (*gossip.ClusterInfo, error) {
	host, port, err := net.SplitHostPort(s.server.Address())
	if err != nil {
		return nil, fmt.Errorf("gossip: %w", err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("gossip: %w", err)
	}
	return &gossip.ClusterInfo{Members: []*gossip.MemberInfo{{
		InstanceId: idTo(instance, false), TimeStamp: time.Now().UnixNano() / 100,
		State: gossip.MemberInfo_Leader, IsAlive: true,
		HttpEndPoint: &gossip.EndPoint{Address: host, Port: uint32(number)},
	}}}, nil
}

// gossipService is apart because its call has the name of another.
type gossipService struct {
	gossip.UnimplementedGossipServer
	server *Server
}

// statsStream is where the server writes about itself.
func (s *Server) statsStream() string { return "$stats-" + s.address }

func (s *Server) writeStats() error {
	return s.store.addSystemEvent(s.statsStream(), "$statsCollected", `{"proc-cpu":1.5}`)
}

func (s *Server) sometimesWriteStats() error {
	n := s.appends.Add(1)
	if s.opts.StatsEvery < 0 || n%int64(s.opts.StatsEvery) != 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writeStats()
}
