import type { ValueOf, ValueType } from '../engine/expressions/types.ts';
import type { AggregateColumn } from './aggregates.ts';
import type { Column } from './expressions.ts';

/**
 * Rows whose columns the compiler does not know, the default of `Dataset`. No name is checked, and columns stay
 * unknown after every method.
 */
export type AnyRow = Record<string, unknown>;

/** The row of a schema: `RowOf<{ user: 'int64' }>` is `{ user: bigint | null }`. */
export type RowOf<Types extends Readonly<Record<string, ValueType>>> = {
  -readonly [Name in keyof Types]: ValueOf<Types[Name]>;
};

/** Names of a row's columns; any text for rows of unknown columns. */
export type NameOf<Row> = keyof Row & string;

/** A row as one object type. */
export type Flat<Row> = { [Name in keyof Row]: Row[Name] };

/** `Changed`, unless the columns of `Row` are unknown: then they stay unknown. */
export type IfKnown<Row, Changed> = string extends keyof Row
  ? AnyRow
  : string extends keyof Changed
    ? AnyRow
    : Flat<Changed>;

/** Rows with columns added or replaced. */
export type With<Row, Added> = IfKnown<Row, Omit<Row, keyof Added> & Added>;

/** The columns of these names, and of expressions with a name; without one, columns become unknown. */
export type Selected<Row, One> = IfKnown<
  Row,
  {
    [Each in One as Each extends Column<infer Name> ? Name : Each & string]: Each extends keyof Row
      ? Row[Each]
      : Each extends Column<string, infer Value>
        ? Value
        : never;
  }
>;

/** A row with a column under another name. */
export type Renamed<Row, From extends string, To extends string> = IfKnown<
  Row,
  { [Name in keyof Row as Name extends From ? To : Name]: Row[Name] }
>;

/** The columns of aggregates by their names. */
export type Aggregated<One extends AggregateColumn> = {
  [Each in One as Each['name']]: Each extends AggregateColumn<string, infer Value> ? Value : never;
};

/** The elements of a column of lists. */
export type ElementOf<Lists> = Lists extends readonly (infer Element)[] ? Element : unknown;

/** Every value may be null. */
export type Nullable<Row> = { [Name in keyof Row]: Row[Name] | null };

/** Names of the other side's key columns. */
type OtherKeys<On> = On extends string
  ? On
  : On extends readonly (infer Name)[]
    ? Name
    : On extends { readonly right: infer Right }
      ? OtherKeys<Right>
      : never;

/** The kind of a join; columns with a suffix are unknown to the compiler. */
type KindOf<How> = How extends string
  ? How
  : How extends { readonly suffix: string }
    ? 'suffix'
    : How extends { readonly how: infer Kind }
      ? Kind
      : 'inner';

/** Rows of a join. */
export type Joined<Row, Other, On, How> =
  JoinedBy<Row, Omit<Other, OtherKeys<On> & PropertyKey>, KindOf<How>> extends infer Result
    ? string extends keyof Other
      ? AnyRow
      : IfKnown<Row, Result>
    : never;

type JoinedBy<Row, Others, Kind> = Kind extends 'inner'
  ? Row & Others
  : Kind extends 'semi' | 'anti'
    ? Row
    : Kind extends 'left'
      ? Row & Nullable<Others>
      : Kind extends 'right'
        ? Nullable<Row> & Others
        : Kind extends 'full'
          ? Nullable<Row & Others>
          : AnyRow;
