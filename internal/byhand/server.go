package byhand

import (
	"context"
	"database/sql"
	"fmt"

	"cnmsql.co/internal/archive"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/restore"
)

// Reasons why nothing is replayed on a server.
var (
	ServerReplicates = &archive.Reason{Name: "ServerReplicates", Advice: "a replay forgets what a server replicates " +
		"from, with its filters: check that --socket is that of the server which was started on the restored " +
		"files. If it is, execute STOP REPLICA there"}
	ServerNotRestored = &archive.Reason{Name: "ServerNotRestored", Advice: "check that --socket is that of the " +
		"server which was started on the restored files, and --backup what was restored; nothing was changed"}
)

// isRestored refuses a server that is not the one on a backup's files, as far as that can be told.
func (a Archive) isRestored(ctx context.Context, db *sql.DB, o *restore.Origin, holds gtid.Set) error {
	var channels sql.NullString
	err := db.QueryRowContext(ctx, `SELECT GROUP_CONCAT(DISTINCT CONCAT('"', CHANNEL_NAME, '"') SEPARATOR ', ') FROM
		(SELECT CHANNEL_NAME, SERVICE_STATE FROM performance_schema.replication_connection_status
		UNION ALL SELECT CHANNEL_NAME, SERVICE_STATE FROM performance_schema.replication_applier_status) s
		WHERE SERVICE_STATE <> 'OFF' AND CHANNEL_NAME <> ?`, archive.Channel).Scan(&channels)
	if err != nil {
		return fmt.Errorf("asking mysqld on %s what it replicates from: %w", a.Socket, err)
	}
	if channels.Valid {
		return fmt.Errorf("mysqld on %s replicates by the channel %s: %w", a.Socket, channels.String, ServerReplicates)
	}
	if lacks := o.Base.BeginGTID.Subtract(holds); !lacks.IsEmpty() {
		return fmt.Errorf("mysqld on %s does not hold %s of backup %s: %w", a.Socket, lacks.Abbreviate(4), o.Base.ID,
			ServerNotRestored)
	}
	return nil
}
