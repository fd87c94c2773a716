package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// access is what lets the owner into the database, and into no other, as the server reads its name now.
func (f First) access(ctx context.Context, conn *sql.Conn) (statement, error) {
	var partialRevokes bool
	if err := conn.QueryRowContext(ctx, "SELECT @@GLOBAL.partial_revokes").Scan(&partialRevokes); err != nil {
		return statement{}, fmt.Errorf("asking how GRANT reads the name of a database: %w", err)
	}
	return statement{"GRANT ALL ON " + grantee(f.Database, partialRevokes) + ".* TO ?@'%'", []any{f.Owner.User}}, nil
}

// grantee quotes a database's name in GRANT, where _ and % stand for any. With partial_revokes they stand
// for themselves there, and so does what would quote them.
func grantee(database string, partialRevokes bool) string {
	if partialRevokes {
		return identifier(database)
	}
	return identifier(strings.NewReplacer(`_`, `\_`, `%`, `\%`).Replace(database))
}
