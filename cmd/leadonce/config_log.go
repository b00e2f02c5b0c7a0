package main

func (c *config) checkLog() error {
	switch {
	case c.Log != logSQLite && c.Log != logMemory && c.Log != logKurrentDB:
		return mistake("log: %q is unknown, give %s, %s or %s", c.Log, logSQLite, logMemory, logKurrentDB)
	case c.Log == logMemory && c.Role != roleAll:
		return mistake("log: memory can be seen by its own process only, which must have the role %s", roleAll)
	}
	if c.Log == logKurrentDB {
		k, err := c.cluster()
		if err == nil {
			err = checkKurrentDB(k)
		}
		if err != nil {
			return err
		}
	}
	if c.DataDir == "" {
		return mistake("data_dir: empty, give a folder")
	}
	return nil
}

// The logs that a configuration can name.
const (
	logSQLite    = "sqlite"
	logMemory    = "memory"
	logKurrentDB = "kurrentdb"
)

// cluster is where KurrentDB is, with the environment's values. They may hold a
// password: no error quotes them.
func (c *config) cluster() (kurrentConfig, error) {
	k := c.KurrentDB
	if k.Connection == "" {
		return k, mistake("kurrentdb.connection: none; give the cluster's address, such as esdb://user:${KURRENTDB_PASSWORD}@host:2113?tls=true")
	}
	var err error
	k.Connection, err = expand("kurrentdb.connection", k.Connection)
	return k, err
}
