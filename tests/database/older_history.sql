BEGIN TRANSACTION;
CREATE TABLE history_creations (
	digest VARCHAR(64) NOT NULL, 
	files BIGINT NOT NULL, 
	content BLOB NOT NULL, 
	PRIMARY KEY (digest)
);
INSERT INTO "history_creations" VALUES('2322b9837c342ac1975bf36ad6d84b4c87b23ff4a3c2db86a14f6e87eef3be9c',4,X'789CAB562ACEAC4A55B28A36343030D041256275948A12F3B2819240BE8E918E3150A0B8A428B320B5182C068640B182C4920CA080927E717251624972867E624AA27E717E4E596A917E7E69899E81920E4E39433C724678E48C95626B0134523A8F');
INSERT INTO "history_creations" VALUES('4f96b91ca49f6f7a2373fcc4e21604ef845db51bca72e437d5be023250621d03',4,X'789CAB562ACEAC4A55B28A36343030D041256275948A12F3B2819240BE8E918E3150A0B8A428B320B5182C068640B182C4920CA080927E717251624972867E624AA27E717E4E596A917E7E69899E81920E4E39433C724678E48C95626B0134523A8F');
CREATE TABLE history_facts (
	name VARCHAR(64) NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (name)
);
CREATE TABLE history_jobs (
	job VARCHAR(40) NOT NULL, 
	user TEXT, 
	account TEXT, 
	qos TEXT, 
	partition TEXT, 
	nodes BIGINT, 
	state TEXT, 
	started DOUBLE, 
	elapsed_s DOUBLE, 
	PRIMARY KEY (job)
);
CREATE TABLE history_judged (
	digest VARCHAR(64) NOT NULL, 
	system TEXT NOT NULL, 
	saved_low_s DOUBLE NOT NULL, 
	saved_s DOUBLE NOT NULL, 
	saved_high_s DOUBLE NOT NULL, 
	rule TEXT NOT NULL, 
	setting TEXT NOT NULL, 
	why TEXT NOT NULL, 
	lines TEXT NOT NULL, typical BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (digest)
);
CREATE TABLE history_letters (
	application TEXT NOT NULL, 
	user TEXT NOT NULL, 
	written DOUBLE NOT NULL, 
	rule TEXT NOT NULL, 
	setting TEXT NOT NULL, 
	low DOUBLE, 
	expected DOUBLE, 
	high DOUBLE, 
	PRIMARY KEY (application, user, written)
);
CREATE TABLE history_measured (
	digest VARCHAR(64) NOT NULL, 
	position INTEGER NOT NULL, 
	user TEXT NOT NULL, 
	application TEXT, 
	machine TEXT, 
	processes BIGINT, 
	nodes BIGINT, 
	setting TEXT NOT NULL, 
	rules TEXT NOT NULL, 
	verdict VARCHAR(16) NOT NULL, 
	speedup DOUBLE, 
	low DOUBLE, 
	high DOUBLE, 
	expected DOUBLE, 
	runs BIGINT NOT NULL, 
	noise DOUBLE, 
	ended DOUBLE NOT NULL, 
	PRIMARY KEY (digest, position)
);
CREATE TABLE history_planned (
	job VARCHAR(32) NOT NULL, 
	ended DOUBLE NOT NULL, 
	name TEXT NOT NULL, 
	user TEXT NOT NULL, 
	nodes BIGINT NOT NULL, 
	digest VARCHAR(64), 
	application TEXT, 
	processes BIGINT, 
	stripe_count BIGINT, 
	io_nodes BIGINT, 
	changed BOOLEAN NOT NULL, 
	"before" DOUBLE, 
	expected DOUBLE, 
	low DOUBLE, 
	high DOUBLE, 
	measured DOUBLE, 
	method TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	PRIMARY KEY (job, ended)
);
CREATE TABLE history_profiles (
	digest VARCHAR(64) NOT NULL, 
	content BLOB NOT NULL, 
	PRIMARY KEY (digest)
);
CREATE TABLE history_runs (
	id INTEGER NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	user TEXT NOT NULL, 
	uid BIGINT, 
	application TEXT NOT NULL, 
	processes BIGINT NOT NULL, 
	submitted DOUBLE, 
	runtime_s DOUBLE, 
	bytes_read BIGINT, 
	bytes_written BIGINT, 
	reads BIGINT, 
	writes BIGINT, 
	opens BIGINT, 
	metadata BIGINT, 
	collective BIGINT, 
	independent BIGINT, 
	files BIGINT, 
	shared_files BIGINT, 
	read_s DOUBLE, 
	write_s DOUBLE, 
	metadata_s DOUBLE, 
	in_io_s DOUBLE, 
	slowest_s DOUBLE, 
	waiting_s DOUBLE, 
	writers BIGINT, 
	file_system TEXT NOT NULL, 
	mount TEXT NOT NULL, 
	stripes BIGINT, 
	complete BOOLEAN NOT NULL, target_times TEXT, job VARCHAR(40), 
	PRIMARY KEY (id), 
	CONSTRAINT history_runs_digest UNIQUE (digest)
);
INSERT INTO "history_runs" VALUES(1,'2322b9837c342ac1975bf36ad6d84b4c87b23ff4a3c2db86a14f6e87eef3be9c','darshan','ada',1000,'solver',4,1793491200.0,100.0,0,4000,0,40,4,4,0,0,4,0,0.0,13.0,0.0,13.0,10.0,40.0,4,'lustre','/scratch',NULL,1,NULL,NULL);
INSERT INTO "history_runs" VALUES(2,'4f96b91ca49f6f7a2373fcc4e21604ef845db51bca72e437d5be023250621d03','darshan','ada',1000,'solver',4,1793491200.0,100.0,0,4000,0,40,4,4,0,0,4,0,0.0,13.0,0.0,13.0,10.0,40.0,4,'lustre','/scratch',NULL,1,NULL,'1');
CREATE TABLE history_sources (
	place VARCHAR(64) NOT NULL, 
	path TEXT NOT NULL, 
	size BIGINT NOT NULL, 
	changed_ns BIGINT NOT NULL, 
	digest VARCHAR(64), 
	reason TEXT, 
	PRIMARY KEY (place)
);
INSERT INTO "history_sources" VALUES('5ab84c9d7fd798a23d1f0574a6e23a7e49bbd8166e1ae30039e0a5e6f9dba2d6','/tmp/oldlogs/ada_solver_id0-0_11-1-100-0_1.darshan',1623,1795905578583389500,'2322b9837c342ac1975bf36ad6d84b4c87b23ff4a3c2db86a14f6e87eef3be9c',NULL);
INSERT INTO "history_sources" VALUES('d628194f7fd6e26657ab350f558bd996e7f726548ea51355f3406d4a86e08ac7','/tmp/oldlogs/ada_solver_id1-1_11-1-100-1_1.darshan',1624,1795905578586100674,'4f96b91ca49f6f7a2373fcc4e21604ef845db51bca72e437d5be023250621d03',NULL);
CREATE TABLE history_sums (
	unit VARCHAR(5) NOT NULL, 
	day BIGINT NOT NULL, 
	application TEXT NOT NULL, 
	user TEXT NOT NULL, 
	processes BIGINT NOT NULL, 
	file_system TEXT NOT NULL, 
	mount TEXT NOT NULL, 
	runs BIGINT NOT NULL, 
	core_s DOUBLE NOT NULL, 
	in_io_s DOUBLE NOT NULL, 
	waiting_s DOUBLE NOT NULL, 
	first DOUBLE, 
	last DOUBLE, 
	PRIMARY KEY (unit, day, application, user, processes, file_system, mount)
)
 WITHOUT ROWID

;
INSERT INTO "history_sums" VALUES('day',20758,'solver','ada',4,'lustre','/scratch',2,800.0,26.0,80.0,1793491200.0,1793491200.0);
INSERT INTO "history_sums" VALUES('month',20758,'solver','ada',4,'lustre','/scratch',2,800.0,26.0,80.0,1793491200.0,1793491200.0);
CREATE TABLE history_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT history_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "history_version" VALUES('0010');
CREATE INDEX history_runs_by_time ON history_runs (submitted);
CREATE INDEX history_sources_of_run ON history_sources (digest);
CREATE INDEX history_runs_of_category ON history_runs (application, user, processes, submitted, runtime_s, in_io_s, waiting_s, bytes_read, bytes_written);
CREATE INDEX history_measured_of_application ON history_measured (application, machine);
CREATE INDEX history_planned_of_name ON history_planned (name, user);
CREATE INDEX history_runs_of_job ON history_runs (job);
COMMIT;
