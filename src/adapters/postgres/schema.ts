/** SQL for the tables of the store, and for its functions that run in the database. */

import { ENTRY_BYTES } from "../../execute/durable/mod.ts";

export const VERSION = 1;

const NOW = "date_part('epoch', clock_timestamp()) * 1000";
/** The condition of an entry that has not expired, at the start time of the statement. */
const IS_LIVE = "(expires is null or expires > date_part('epoch', statement_timestamp()) * 1000)";
const WEIGHT = `${ENTRY_BYTES} + length(key) + octet_length(value)`;
/** The number of writes after which expired entries are deleted, and how many are deleted at most. */
const WRITES_TO_SWEEP = 256;
const SWEPT = 1_000;
/** The maximum number of entries in a page of a list, and the bytes after which a page ends. */
const PAGE_ROWS = 128;
const PAGE_BYTES = 1_048_576;
/** The maximum time to wait for another write of the same owner. */
const LOCK_WAIT = "5s";

/**
 * Returns statements that create or update the tables, and change nothing if these are current.
 *
 * Each write first locks the row of its owner. So quotas are exact, the revisions of a key rise, and
 * all writes take locks in the same order, which prevents deadlocks. A sweep waits for no lock.
 */
export function migrationOf(schema: string): string {
  const s = `"${schema}"`;
  return `
select pg_advisory_xact_lock(hashtext('plue.${schema}'));
do $$ begin
  if to_regnamespace('${s}') is null then create schema ${s}; end if;
end $$;
create table if not exists ${s}.about(version int not null);
do $$ begin
  if exists(select from ${s}.about where version > ${VERSION}) then
    raise exception 'a later version of plue has made them; update plue';
  end if;
end $$;
-- With a cache, sessions would use numbers out of order.
create sequence if not exists ${s}.revisions cache 1;
create table if not exists ${s}.owners(
  owner text collate "C" primary key, bytes bigint not null) with (fillfactor = 50);
create table if not exists ${s}.entries(
  key text collate "C" primary key,
  owner text collate "C" not null,
  revision bigint not null,
  expires double precision,
  due double precision,
  value bytea not null);
alter table ${s}.entries alter column value set storage external;
create index if not exists expiring on ${s}.entries(expires) where expires is not null;
create index if not exists expiring_of_owner on ${s}.entries(owner, expires)
  where expires is not null;
create index if not exists due on ${s}.entries(split_part(key, '.', 1), due, key)
  where due is not null;

-- Deletes expired entries of an owner whose row is locked, except the entry of a key.
create or replace function ${s}.expire(o text, k text, until double precision)
  returns void language sql as $$
  with gone as (
    delete from ${s}.entries where key in (
      select key from ${s}.entries where owner = o and expires <= until and key <> k
      order by expires limit ${SWEPT})
    returning ${WEIGHT} as weight)
  update ${s}.owners set bytes = bytes - (select coalesce(sum(weight), 0) from gone)
    where owner = o;
$$;

create or replace function ${s}.sweep() returns void language plpgsql as $$
declare
  o text;
  until double precision;
begin
  if not pg_try_advisory_xact_lock(hashtext('plue.${schema}'), 1) then return; end if;
  select max(expires) into until from (
    select expires from ${s}.entries where expires <= ${NOW} order by expires limit ${SWEPT}) first;
  for o in select distinct owner from ${s}.entries where expires <= until loop
    perform from ${s}.owners where owner = o for update skip locked;
    continue when not found;
    perform ${s}.expire(o, '', until);
    delete from ${s}.owners where owner = o and bytes = 0;
  end loop;
end $$;

-- Returns the new revision; null if the key has another revision, or is taken; 0 if the quota is
-- exhausted. Without an expected revision it creates the key.
create or replace function ${s}.put(k text, v bytea, ends double precision,
  due_at double precision, expected bigint, most bigint, deadline double precision)
  returns bigint language plpgsql set lock_timeout = '${LOCK_WAIT}' as $$
declare
  o constant text := split_part(k, '.', 2);
  used bigint;
  more bigint := ${ENTRY_BYTES} + length(k) + octet_length(v);
  had bigint;
  rev bigint;
  is_live boolean;
  now_ms double precision;
begin
  loop
    select bytes into used from ${s}.owners where owner = o for update;
    exit when found;
    if expected is not null then return null; end if;
    insert into ${s}.owners values(o, 0) on conflict do nothing;
  end loop;
  now_ms := ${NOW};
  perform ${s}.check_deadline(deadline);
  select revision, ${WEIGHT}, coalesce(expires > now_ms, true) into rev, had, is_live
    from ${s}.entries where key = k;
  if is_live then
    if rev is distinct from expected then return null; end if;
  elsif expected is not null then
    return null;
  end if;
  more := more - coalesce(had, 0);
  if more > 0 and used + more > most then
    perform ${s}.expire(o, k, now_ms);
    select bytes into used from ${s}.owners where owner = o;
    if used + more > most then
      delete from ${s}.owners where owner = o and bytes = 0;
      return 0;
    end if;
  end if;
  rev := nextval('${s}.revisions');
  insert into ${s}.entries values(k, o, rev, ends, due_at, v) on conflict (key) do update set
    revision = excluded.revision, expires = excluded.expires, due = excluded.due,
    value = excluded.value;
  update ${s}.owners set bytes = bytes + more where owner = o;
  if rev % ${WRITES_TO_SWEEP} = 0 then perform ${s}.sweep(); end if;
  return rev;
end $$;

create or replace function ${s}.remove(k text, expected bigint, deadline double precision)
  returns boolean language plpgsql set lock_timeout = '${LOCK_WAIT}' as $$
declare
  o constant text := split_part(k, '.', 2);
  weight bigint;
begin
  perform from ${s}.owners where owner = o for update;
  perform ${s}.check_deadline(deadline);
  delete from ${s}.entries where key = k and revision = expected
    and (expires is null or expires > ${NOW}) returning ${WEIGHT} into weight;
  if weight is null then return false; end if;
  delete from ${s}.owners where owner = o and bytes = weight;
  if not found then update ${s}.owners set bytes = bytes - weight where owner = o; end if;
  return true;
end $$;

-- The caller of a late write has already been told that it failed.
create or replace function ${s}.check_deadline(deadline double precision)
  returns void language plpgsql as $$
begin
  if ${NOW} > deadline then
    raise exception 'the time for the write is over' using errcode = 'query_canceled';
  end if;
end $$;
insert into ${s}.about select ${VERSION} where not exists(select from ${s}.about);
`;
}

/** Returns the statements of the store. Each answer contains the database's time as `now`. */
export function statementsOf(schema: string) {
  const s = `"${schema}"`;
  return {
    check: `select version, ${NOW} as now, current_setting('transaction_isolation') as isolation,
        current_setting('transaction_read_only') as read_only,
        current_setting('synchronous_commit') as synchronous_commit,
        current_setting('fsync') as fsync
      from ${s}.about`,
    get: `select ${NOW} as now, found.* from (select) one
      left join ${s}.entries found on key = $1 and ${IS_LIVE}`,
    put: `select ${s}.put($1, $2, $3, $4, $5, $6, $7) as revision, ${NOW} as now`,
    remove: `select ${s}.remove($1, $2, $3) as done, ${NOW} as now`,
    // A range of keys: "/" follows "." in ASCII.
    list: `select ${NOW} as now, page.* from (
        select *, sum(octet_length(value)) over (order by key) - octet_length(value) as before from (
          select * from ${s}.entries
          where key > $1 and key >= $2 and key < $2 || '/' and (key = $2 or key > $2 || '.')
            and ${IS_LIVE} order by key limit ${PAGE_ROWS}) found) page
      where before < ${PAGE_BYTES} order by key`,
    due: `select ${NOW} as now, found.* from ${s}.entries found
      where split_part(key, '.', 1) = $1 and due <= $2 and (due, key) > ($4, $5) and ${IS_LIVE}
      order by due, key limit $3`,
  } satisfies Readonly<Record<string, string>>;
}
