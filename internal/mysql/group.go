package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// GroupConfig is what makes a server a member of a group.
type GroupConfig struct {
	Name string
	// LocalAddress is the host and port at which the others speak with this member.
	LocalAddress    string
	Consistency     string
	ExitStateAction string
	// AutoRejoinTries of an expelled member by itself.
	AutoRejoinTries int
	// ExpelTimeout and MajorityTimeout are in seconds.
	ExpelTimeout, MajorityTimeout int
}

// cloneBehind is how many transactions a member may lack before it is cloned from
// another rather than sent them.
const cloneBehind = 1000000

// group is never told to begin by itself, and never to make the group: both are
// said to a running server, by someone who knows whether it may.
func (c Config) group() []setting {
	g := c.Group
	const prefix = "group_replication_"
	out := []setting{
		{prefix + "start_on_boot", "OFF"},
		{prefix + "local_address", g.LocalAddress},
		{prefix + "ip_allowlist", c.firstAllowlist()},
		{prefix + "ssl_mode", "VERIFY_CA"},
		{prefix + "recovery_use_ssl", "ON"},
		{prefix + "recovery_ssl_ca", c.CAFile},
		{prefix + "recovery_ssl_cert", c.CertFile},
		{prefix + "recovery_ssl_key", c.KeyFile},
		{prefix + "recovery_ssl_verify_server_cert", "ON"},
		{prefix + "recovery_retry_count", "10"},
		{prefix + "recovery_reconnect_interval", "2"},
		{prefix + "clone_threshold", strconv.Itoa(cloneBehind)},
		{prefix + "single_primary_mode", "ON"},
		{prefix + "enforce_update_everywhere_checks", "OFF"},
		{prefix + "consistency", g.Consistency},
		{prefix + "exit_state_action", g.ExitStateAction},
		{prefix + "autorejoin_tries", strconv.Itoa(g.AutoRejoinTries)},
		{prefix + "member_expel_timeout", strconv.Itoa(g.ExpelTimeout)},
		{prefix + "unreachable_majority_timeout", strconv.Itoa(g.MajorityTimeout)},
		{prefix + "message_cache_size", strconv.FormatInt(messageCache(c.Memory), 10)},
	}
	if g.Name == "" { // nobody has chosen one yet, and no member is made before
		return out
	}
	return append(out, setting{prefix + "group_name", g.Name})
}

// firstAllowlist admits nobody else until the members are known, see AdmitMembers. A
// server that cannot be told while it is a member admits everybody.
func (c Config) firstAllowlist() string {
	if c.Version.has(allowlistOfRunningMember) {
		return "127.0.0.1/8"
	}
	return "0.0.0.0/0,::/0"
}

// AdmitMembers lets these addresses connect to the member, and no other. A connection
// between members is encrypted, and whoever connects checks the other's certificate;
// the other asks for none, so that anybody could speak who is admitted.
func (s *Server) AdmitMembers(ctx context.Context, addresses string) error {
	if !s.version().has(allowlistOfRunningMember) {
		return nil
	}
	return s.setGroupOption(ctx, "ip_allowlist", addresses)
}

// SetRejoinTries sets how often mysqld tries by itself to join again after it was expelled.
func (s *Server) SetRejoinTries(ctx context.Context, tries int) error {
	return s.setGroupOption(ctx, "autorejoin_tries", tries)
}

// SetExpelTimeout sets for how many seconds the group waits for a member that this one suspects.
func (s *Server) SetExpelTimeout(ctx context.Context, seconds int) error {
	return s.setGroupOption(ctx, "member_expel_timeout", seconds)
}

// messageCache keeps what members that are away for a moment have missed. The
// server's own default is a whole GiB.
func messageCache(memory int64) int64 {
	const least, most = 128 << 20, 1 << 30
	return min(max(memory/8, least), most)
}

// memberLag is how many seconds ago the oldest transaction was committed that the workers
// of the group's channel apply, or wait with until those before are committed; 0 if none.
const memberLag = `SELECT COALESCE(MAX(TIMESTAMPDIFF(MICROSECOND,
		APPLYING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP, NOW(6))), 0) / 1000000
	FROM performance_schema.replication_applier_status_by_worker
	WHERE CHANNEL_NAME = 'group_replication_applier' AND APPLYING_TRANSACTION <> ''
		AND APPLYING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP > 0`

// GroupView asks for the group as this server sees it.
func (s *Server) GroupView(ctx context.Context) (*core.GroupView, error) {
	out := &core.GroupView{}
	return out, s.ask(ctx, groupQuestions(out)...)
}

func groupQuestions(out *core.GroupView) []question {
	var me string
	var view, received sql.NullString
	return []question{{"asking mysqld for its group", `SELECT @@global.server_uuid,
		(SELECT VIEW_ID FROM performance_schema.replication_group_member_stats
			WHERE MEMBER_ID = @@global.server_uuid AND CHANNEL_NAME = 'group_replication_applier'),
		(SELECT RECEIVED_TRANSACTION_SET FROM performance_schema.replication_connection_status
			WHERE CHANNEL_NAME = 'group_replication_applier'),
		(` + memberLag + `)`, func(rows *sql.Rows) (err error) {
		if err = readOne(rows, &me, &view, &received, &out.LagSeconds); err != nil {
			return err
		}
		out.LagSeconds = max(out.LagSeconds, 0) // the primary's clock may be ahead
		if out.Received, err = gtid.Parse(received.String); err != nil {
			return fmt.Errorf("reading what was received from the group: %w", err)
		}
		return nil
	}}, {"asking mysqld for the members of its group",
		`SELECT MEMBER_ID, MEMBER_HOST, MEMBER_STATE, MEMBER_ROLE, MEMBER_VERSION
			FROM performance_schema.replication_group_members ORDER BY MEMBER_HOST`,
		func(rows *sql.Rows) error {
			for rows.Next() {
				var m core.ViewMember
				if err := rows.Scan(&m.UUID, &m.Host, &m.State, &m.Role, &m.Version); err != nil {
					return err
				}
				if m.UUID == me {
					out.State, out.Role = m.State, m.Role
				}
				if m.UUID != "" && m.State != core.MemberOffline {
					out.Members = append(out.Members, m)
				}
			}
			out.State = cmp.Or(out.State, core.MemberOffline)
			if out.State == core.MemberOffline || out.State == core.MemberError {
				out.Role = ""
			} else {
				out.ViewID = view.String
			}
			return rows.Err()
		}}}
}

// JoinGroup makes this server a member. With bootstrap it makes the group, and EndBootstrap has to follow,
// whatever has come of it.
func (s *Server) JoinGroup(ctx context.Context, seeds []string, account Account, bootstrap bool) error {
	for _, option := range []struct {
		name  string
		value any
	}{{"force_members", ""}, {"group_seeds", strings.Join(seeds, ",")}, {"bootstrap_group", bootstrap}} {
		if err := s.setGroupOption(ctx, option.name, option.value); err != nil {
			return err
		}
	}
	return wrap("joining the group",
		unquoted(s.exec(ctx, "START GROUP_REPLICATION USER=?, PASSWORD=?", account.User, account.Password)))
}

// EndBootstrap has the server make no group when it is told to join one, whether or not the caller still
// waits: a second group of the same name would be the end of both.
func (s *Server) EndBootstrap(ctx context.Context) error {
	return wrap("having mysqld make no other group", s.resetGroupOption(ctx, "bootstrap_group", false))
}

// LeaveGroup ends the membership. It returns when the server is read-only.
func (s *Server) LeaveGroup(ctx context.Context) error {
	return wrap("leaving the group", s.exec(ctx, "STOP GROUP_REPLICATION"))
}

// SetGroupPrimary asks the group to make the member with this server UUID primary,
// and returns when it is. The group waits for the transactions that the old primary has in
// progress. With a bound, in seconds, that refuses clients' statements meanwhile, reads too,
// and closes in the end the sessions whose transactions are left. Without one, where it is 0
// or a member knows none, all go on, and one idle transaction holds up the group.
func (s *Server) SetGroupPrimary(ctx context.Context, uuid string, within int) error {
	bounded, err := s.groupBoundsTransactions(ctx)
	if err != nil {
		return err
	}
	statement, args := "SELECT group_replication_set_as_primary(?)", []any{uuid}
	if bounded && within > 0 {
		statement, args = "SELECT group_replication_set_as_primary(?, ?)", []any{uuid, within}
	}
	var said string
	if err := s.db.QueryRowContext(ctx, statement, args...).Scan(&said); err != nil {
		return fmt.Errorf("asking the group for another primary: %w", err)
	}
	return nil
}

// groupBoundsTransactions reports whether all members know a bound of how long transactions in
// progress hold up another primary. The group refuses the bound otherwise. A member whose version
// cannot be read does not know it.
func (s *Server) groupBoundsTransactions(ctx context.Context) (bool, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT MEMBER_VERSION FROM performance_schema.replication_group_members")
	if err != nil {
		return false, fmt.Errorf("asking the group for the versions of its members: %w", err)
	}
	defer func() { _ = rows.Close() }()
	all := s.version().has(boundsGroupTransactions)
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return false, fmt.Errorf("asking the group for the versions of its members: %w", err)
		}
		v, err := parseNumbers(text)
		all = all && err == nil && v.has(boundsGroupTransactions)
	}
	return all, rows.Err()
}

// ForceMembers makes the group go on with the members at these addresses alone, and
// forgets the list, which would keep the server from joining again.
func (s *Server) ForceMembers(ctx context.Context, addresses []string) error {
	err := s.setGroupOption(ctx, "force_members", strings.Join(addresses, ","))
	return errors.Join(err, s.resetGroupOption(ctx, "force_members", ""))
}

// setGroupOption sets an option of the group. While another is being set, or the group
// is being joined or left, the server refuses for a moment.
func (s *Server) setGroupOption(ctx context.Context, name string, value any) error {
	var busy error
	err := until(ctx, 20*time.Millisecond, func() (bool, error) {
		busy = s.setGlobal(ctx, "group_replication_"+name, value)
		return !isError(busy, errGroupBusy), nil
	})
	return errors.Join(busy, err)
}

// resetGroupOption takes an option back that must not stay as it is, whether or not the
// caller still waits.
func (s *Server) resetGroupOption(ctx context.Context, name string, value any) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return s.setGroupOption(ctx, name, value)
}

// RaiseProtocol has the group speak the newest protocol that servers of a version know,
// and reports whether it had to. A group keeps the protocol that it was made with, however
// new its members have become since.
func (s *Server) RaiseProtocol(ctx context.Context, version string) (raised bool, err error) {
	var speaks string
	if err := s.db.QueryRowContext(ctx, "SELECT group_replication_get_communication_protocol()").Scan(
		&speaks); err != nil {
		return false, fmt.Errorf("asking which protocol the group speaks: %w", err)
	}
	now, err := parseNumbers(speaks)
	if err != nil {
		return false, fmt.Errorf("reading which protocol the group speaks: %w", err)
	}
	common, err := parseNumbers(version)
	if err != nil {
		return false, fmt.Errorf("reading the version of the members: %w", err)
	}
	for _, protocol := range protocols {
		if common.AtLeast(protocol) && !now.AtLeast(protocol) {
			var said string
			err := s.db.QueryRowContext(ctx, "SELECT group_replication_set_communication_protocol(?)",
				common.numbers()).Scan(&said)
			return err == nil, wrap("raising the protocol of the group", err)
		}
	}
	return false, nil
}

// ForgetFormerMembers has the group forget the addresses of those who are no members any
// more. It keeps its last few configurations, and whoever joins tries to connect to every
// address in them, as long as they are kept. Where nobody answers at an address (that of a
// Pod that was replaced), each attempt takes a second, for which the group waits. Changing
// the write concurrency and changing it back makes two configurations of the present
// members. Source: mysqld 9.7, traced; MySQL's manual does not tell.
func (s *Server) ForgetFormerMembers(ctx context.Context) error {
	now, err := s.writeConcurrency(ctx)
	if err != nil {
		return err
	}
	other := now + 1
	if now == mostConcurrency {
		other = now - 1
	}
	for _, n := range []int{other, now} {
		if err := s.setWriteConcurrency(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// mostConcurrency is the highest write concurrency that there is.
const mostConcurrency = 200

func (s *Server) writeConcurrency(ctx context.Context) (n int, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT group_replication_get_write_concurrency()").Scan(&n)
	return n, wrap("asking the group for its write concurrency", err)
}

// setWriteConcurrency returns when the group has it.
func (s *Server) setWriteConcurrency(ctx context.Context, n int) error {
	var said string
	if err := s.db.QueryRowContext(ctx, fmt.Sprintf("SELECT group_replication_set_write_concurrency(%d)",
		n)).Scan(&said); err != nil {
		return fmt.Errorf("setting the write concurrency of the group: %w", err)
	}
	return wrap("setting the write concurrency of the group", until(ctx, 10*time.Millisecond, func() (bool, error) {
		now, err := s.writeConcurrency(ctx)
		return now == n, err
	}))
}

// protocols are the versions that brought a new one, the newest first.
var protocols = []Version{{Major: 8, Minor: 0, Patch: 27}, {Major: 8, Minor: 0, Patch: 16}}
