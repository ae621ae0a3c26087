-- Who may do what in Postgres. As a superuser, once per server, before the first `petard migrate`:
--
--     psql --set ON_ERROR_STOP=1 --file deploy/postgres/roles.sql
--
-- Then give each login that is used a password with psql's \password: until then none can log in by one.

-- Three roles without login hold the rights; what each may do to which table, the migrations say.
CREATE ROLE petard_owner NOLOGIN;
CREATE ROLE petard_worker NOLOGIN;
CREATE ROLE petard_reader NOLOGIN;

-- `petard migrate`, and nothing else.
CREATE ROLE petard_migrate LOGIN;
GRANT petard_owner, petard_worker, petard_reader TO petard_migrate;

-- Workers, publishers and the commands of operators: cannot change or delete what is in the ledger.
CREATE ROLE petard_service LOGIN;
GRANT petard_worker, petard_reader TO petard_service;

-- People and dashboards that only look.
CREATE ROLE petard_view LOGIN;
GRANT petard_reader TO petard_view;

-- Names are compared byte by byte, so the order of a board must not follow a language.
CREATE DATABASE petard OWNER petard_migrate ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0;
REVOKE CONNECT, TEMPORARY ON DATABASE petard FROM PUBLIC;
GRANT CONNECT ON DATABASE petard TO petard_service, petard_view;

-- Before Postgres 15 everybody may make tables in this schema.
\connect petard
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
