package mysql

import (
	"context"
	"fmt"
)

// ourChannel has a statement mean the channel by which an instance follows the primary. Without it, it
// would mean every channel, or be refused where somebody has made one more.
const ourChannel = " FOR CHANNEL ''"

// StopOtherChannels stops the channels that somebody has made by hand, receiving and applying, and
// names those that ran. What they apply is written by this server, whether it is read-only or not.
// They stay as they are otherwise: where they had got to, and from whom they received, can still be
// read. The channels of a group are its own.
func (s *Server) StopOtherChannels(ctx context.Context) (stopped []string, err error) {
	running, err := s.otherChannels(ctx)
	if err != nil {
		return nil, err
	}
	for _, channel := range running {
		if err := s.stopChannel(ctx, channel); err != nil {
			return stopped, fmt.Errorf("stopping the replication channel %q: %w", channel, err)
		}
		stopped = append(stopped, channel)
	}
	return stopped, nil
}

func (s *Server) stopChannel(ctx context.Context, channel string) error {
	err := s.exec(ctx, "STOP REPLICA IO_THREAD FOR CHANNEL ?", channel)
	if err == nil {
		err = s.giveUpPart(ctx, channel)
	}
	if err == nil {
		err = s.exec(ctx, "STOP REPLICA FOR CHANNEL ?", channel)
	}
	if isError(err, errChannelUnknown, errReplicaNotSetUp) { // somebody has removed it meanwhile
		return nil
	}
	return err
}

// otherChannels are those that run, and are neither the cluster's nor a group's.
func (s *Server) otherChannels(ctx context.Context) (names []string, err error) {
	const doing = "asking mysqld for replication channels of others"
	rows, err := s.db.QueryContext(ctx, `SELECT c.CHANNEL_NAME
		FROM performance_schema.replication_connection_status c
		JOIN performance_schema.replication_applier_status a ON a.CHANNEL_NAME = c.CHANNEL_NAME
		WHERE c.CHANNEL_NAME NOT IN ('', 'group_replication_applier', 'group_replication_recovery')
			AND (c.SERVICE_STATE <> 'OFF' OR a.SERVICE_STATE <> 'OFF') ORDER BY c.CHANNEL_NAME`)
	if err != nil {
		return nil, wrap(doing, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, wrap(doing, err)
		}
		names = append(names, name)
	}
	return names, wrap(doing, rows.Err())
}
