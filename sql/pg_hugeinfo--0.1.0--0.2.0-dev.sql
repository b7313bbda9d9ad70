\echo Use "ALTER EXTENSION pg_hugeinfo UPDATE TO '0.2.0-dev'" to load this file. \quit
-- Nothing differs so far.
