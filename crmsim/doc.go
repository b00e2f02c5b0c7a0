/*
Package crmsim is a CRM that misbehaves on purpose, and a witness of what it did.

It makes leads, meets requests with faults, and keeps a journal of every request and every effect. A
test or a demonstration compares what a client believes with what GET /oracle/effects says. The
package imports nothing of the code it judges.

# What a class promises

	class            create                  the same create again
	idempotency_key  POST /leads             within the validity the first answer, after it a second lead
	upsert           PUT /leads/{external_id} 200, the same lead with its given fields written over
	unique_create    POST /leads             409 already_exists
	lookup           POST /leads             a second lead; GET finds both
	none             POST /leads             a second lead; GET is 405

# Requests to the CRM

A create is POST /leads with

	{"external_id": "e-1", "fields": {"name": "Ada"}}

or, for upsert, PUT /leads/{external_id} with {"fields": {...}}. It answers 201 (upsert of an existing
lead: 200) and {"id": "L-000001"}. A lookup is GET /leads?external_id=e-1 and answers 200 and
{"leads": [{"id": "L-000001", "external_id": "e-1"}]}, oldest first. Errors are
{"error": {"code": "..."}}:

	status  code                    when
	400     malformed               the body is no JSON object of strings, or exceeds 1 MiB
	422     external_id_missing
	422     validation              fields has "reject", or Config.Poisoned says so
	409     look_alike              fields has "look_alike": its value is answered as "id", the id of
	                                somebody else's lead; nothing exists under this external id
	409     already_exists          unique_create; with "id", unless Config.OmitExistingID
	409     idempotency_key_in_use  a request with this key still runs
	422     idempotency_key_reused  the key came with another body before
	400     unknown_fault           header X-Crmsim-Fault names none, or one impossible here; not journaled
	500     journal_failed          the journal cannot be written; nothing happened, nothing will

Class idempotency_key reads the header Idempotency-Key; without it a create is a plain one. The key is
taken when the request arrives, its validity counts from then, and a replayed answer bears
Idempotency-Replayed: true. A request that has no effect leaves its key free.

DELETE /leads/{id} deletes a lead as a person would, and with ?merged_into={id} merges it into another.
It answers 204 or 404 and meets no fault.

# Faults

A request meets the fault named by its header X-Crmsim-Fault (none: no fault), else the next one of the
script, else one drawn by Config.Rates or Config.Faults. A draw depends only on the seed, the operation
and the number of the request.

Config.Faults is spread evenly over the faults marked here. They are those within what the class
promises: under them a correct client can end with one lead per external id, for no effect is later
than Hang after its request arrived, and no lookup misses a lead older than IndexLag. A lead not found
later than Hang + IndexLag after the last request arrived does not exist.

	fault                 on           effect     what the client sees            in the spread of
	reset_connection      create find  never      TCP reset                       all
	cut_before            create find  never      closed without an answer        all
	cut_after             create       at once    closed without an answer        all
	hang_then_apply       create find  Hang late  the true answer, Hang late      all
	rate_limited          create find  never      429, Retry-After in seconds     all
	rate_limited_date     create find  never      429, Retry-After as a date      all
	rate_limited_absent   create find  never      429                             all
	rate_limited_past     create find  never      429, Retry-After an hour ago    all
	rate_limited_far      create find  never      429, Retry-After a year ahead   -
	error_before          create find  never      500 internal                    all
	error_after           create       at once    500 internal                    all
	not_executed          create find  never      503 not_executed, and true      all
	unavailable_before    create find  never      503, no body                    all
	unavailable_after     create       at once    503, no body                    all
	ok_without_id         create       at once    200 {"status":"ok"}             all
	ok_with_error_before  create find  never      200 {"error":...}               all
	ok_with_error_after   create       at once    200 {"error":...}               all
	ok_html_before        create find  never      200, an HTML page               all
	ok_html_after         create       at once    200, an HTML page               all
	bad_request_after     create       at once    400 bad_request                 all
	accepted_later        create       Hang late  202 {"status":"accepted"}       all
	login_redirect        create find  never      302 to /login, an HTML page     all
	lookup_lags           find         at once    200, without leads younger      finders
	                                              than IndexLag
	key_ignored           create       at once    the true answer; the key is     -
	                                              neither read nor kept
	duplicated            create       twice      the answer to the second one    dedup

"finders" are all classes but none; "dedup" are idempotency_key, upsert and unique_create, for in the
others the CRM itself would make two leads. rate_limited_far stops a client for as long as its patience
and is left to scripts; key_ignored is a lie about the class, there for a certification to find. "Twice"
is what a proxy does that sends a request again. A create that validation or its class refuses has no
effect under any fault. The journal reads a request before it resets it, so that the oracle knows what
was asked. A Retry-After below one second is sent as 0 with Retry-After-Ms beside it.

# Control and oracle

	POST   /control/script   {"creates": ["cut_after", "none"], "finds": ["lookup_lags"]}: replaces the
	                         script; 204, or 400 unknown_fault
	POST   /control/down     {"seconds": 0.5}: connections are refused when it answers 204, for so
	                         long; 409 no_outage unless run by Serve on TCP
	GET    /oracle/effects   [{"external_id", "crm_id", "at", "fields"}]: the leads that exist, in order
	                         of creation; two leads with one external id are two objects
	GET    /oracle/requests  {"requests": [...], "totals": {external id: {"creates", "finds"}}}: the
	                         newest ?limit= (default 1000), newest last; ?external_id= asks for one
	GET    /oracle/stats     counts of requests, answers, leads and faults, and of pending late effects

An answer is in the journal before the client can have it, and an effect before it is told to anyone.

# Time

Hang, outages and validity run on Config.Now and Config.After, so a test owns them. When the CRM stops,
late effects happen at once; when it is killed, they never do.
*/
package crmsim
