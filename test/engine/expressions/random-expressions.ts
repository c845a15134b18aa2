/** An expression in this project's SQL and in DuckDB's, where the two differ. */
export type Twin = readonly [own: string, duck: string];

export const kinds = ['bool', 'int', 'float32', 'float64', 'decimal', 'text', 'date', 'timestamp'] as const;
export type Kind = (typeof kinds)[number];

/** Draws numbers below 1. */
type Random = () => number;

/** Column names by kind; `wide`: integers that are only compared; `zoned`: times with a zone. */
export type Columns = Readonly<Record<Kind | 'wide' | 'zoned' | 'list', readonly string[]>>;

/**
 * Column names by kind. Sums of `int` stay far from the limits of int64; `big` and `huge` are only compared.
 */
const tableColumns: Columns = {
  bool: ['b', 'c'],
  int: ['i', 'j'],
  float32: ['f', 'g'],
  float64: ['d', 'e'],
  decimal: ['dm', 'dn', 'dm', 'dn', 'dw'],
  text: ['t', 's'],
  date: ['da', 'db'],
  timestamp: ['ts', 'tt'],
  wide: ['big', 'huge', 'i'],
  zoned: [],
  list: [],
};

/** Draws an expression of a kind; deeper ones have more parts. */
export class RandomExpressions {
  readonly #random: Random;
  readonly #columns: Columns;

  constructor(random: Random, columns = tableColumns) {
    this.#random = random;
    this.#columns = columns;
  }

  draw(kind: Kind, depth: number): Twin {
    if (depth <= 0 || this.#random() < 0.15) return this.#leaf(kind);
    if (this.#random() < 0.2) return this.#conditional(kind, depth - 1);
    return this.#pick(this.#makers(kind, depth - 1))();
  }

  #pick<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.#random() * choices.length)];
  }

  #leaf(kind: Kind): Twin {
    const isColumn = this.#random() < 0.7;
    if (isColumn && this.#columns[kind].length > 0) return same(this.#pick(this.#columns[kind]));
    const number = Math.floor(this.#random() * 20) - 10;
    switch (kind) {
      case 'bool':
        return same(this.#pick(['true', 'false', 'cast(null as bool)']));
      case 'int':
        return [`${number}`, `(${number})::BIGINT`];
      case 'float32':
        return [`cast(${number}.5 as float32)`, `(${number}.5)::FLOAT`];
      case 'float64':
        // A bare literal would take the type of float32 next to it.
        return [`cast(${number}.25 as float64)`, `(${number}.25)::DOUBLE`];
      case 'decimal':
        return same(`cast(${number}.25 as decimal(5,2))`);
      case 'text':
        return same(this.#pick(["'a'", "'Été'", "''", "'12'"]));
      case 'date':
        return same(this.#pick(["date '2024-02-29'", "date '1969-12-31'"]));
      default:
        return same(this.#pick(["timestamp '2024-02-29 13:00:00.5'", "timestamp '1969-12-31 23:59:59'"]));
    }
  }

  #conditional(kind: Kind, depth: number): Twin {
    const [when, a, b] = [this.draw('bool', depth), this.draw(kind, depth), this.draw(kind, depth)];
    return this.#pick([
      () => join([when, a, b], (w, x, y) => `case when ${w} then ${x} else ${y} end`),
      () => join([when, a], (w, x) => `case when ${w} then ${x} end`),
      () => join([a, b], (x, y) => `coalesce(${x}, ${y})`),
      () => (kind === 'bool' ? a : join([a, b], (x, y) => `least(${x}, ${y})`)),
      () => (kind === 'bool' ? b : join([a, b], (x, y) => `greatest(${x}, ${y})`)),
    ])();
  }

  #makers(kind: Kind, depth: number): readonly (() => Twin)[] {
    switch (kind) {
      case 'bool':
        return this.#bools(depth);
      case 'int':
        return this.#integers(depth);
      case 'float32':
        return this.#floats(depth);
      case 'float64':
        return this.#doubles(depth);
      case 'decimal':
        return this.#decimals(depth);
      case 'text':
        return this.#texts(depth);
      case 'date':
        return this.#dates(depth);
      default:
        return this.#timestamps(depth);
    }
  }

  #integers(depth: number): readonly (() => Twin)[] {
    const of = (part: Kind) => this.draw(part, depth);
    return [
      () => this.#arithmetic('int', depth),
      () => join([of('int')], (x) => `abs(${x})`),
      () => join([of('text')], (x) => `length(${x})`),
      () =>
        join(
          [of('float64')],
          (x) => `try_cast(${x} as bigint)`,
          (x) => `try_cast(trunc(${x}) as bigint)`,
        ),
      () => join([of('text')], (x) => `try_cast(${x} as bigint)`),
      () => join([of('decimal')], (x) => `try_cast(${x} as bigint)`),
      () => join([of('bool')], (x) => `cast(${x} as bigint)`),
      () =>
        join([of(this.#pick(['date', 'timestamp']))], (x) => `${this.#pick(['year', 'month', 'day'])}(${x})`),
      () => join([of('timestamp')], (x) => `hour(${x})`),
      () =>
        join(
          [of('timestamp')],
          (x) => `hour(${x}, 'Asia/Kolkata')`,
          (x) => `hour(${local(x, 'Asia/Kolkata')})`,
        ),
      () =>
        join(
          [of('text')],
          (x) => `listLength(split(${x}, 'a'))`,
          (x) => `len(string_split(${x}, 'a'))`,
        ),
      () =>
        join(
          [of('date')],
          (x) => `day_of_week(${x})`,
          (x) => `(dayofweek(${x}) + 1)`,
        ),
      () => join([of('date'), of('date')], (x, y) => `(${x} - ${y})`),
      () => join([this.#zoned(depth)], (x) => `${this.#pick(['year', 'month', 'day', 'hour'])}(${x})`),
      () =>
        join(
          [this.#list(depth)],
          (x) => `listLength(${x})`,
          (x) => `len(${x})`,
        ),
      () =>
        join(
          [of('timestamp')],
          (x) => `unix_seconds(${x})`,
          (x) => `floor(epoch(${x}))::BIGINT`,
        ),
    ];
  }

  #floats(depth: number): readonly (() => Twin)[] {
    const of = (part: Kind) => this.draw(part, depth);
    return [
      () => this.#arithmetic('float32', depth),
      () => this.#rounded('float32', depth),
      () => join([of('decimal'), of('float32')], (x, y) => `(${short(x, '6,3')} + ${y})`),
      () =>
        join(
          [of('float32')],
          (x) => `(${x} * 0.1)`,
          (x) => `(${x} * 0.1::FLOAT)`,
        ),
    ];
  }

  #doubles(depth: number): readonly (() => Twin)[] {
    const of = (part: Kind) => this.draw(part, depth);
    return [
      () => this.#arithmetic('float64', depth),
      () => this.#rounded('float64', depth),
      () =>
        join(
          [of('int'), of('int')],
          (x, y) => `(${x} / ${y})`,
          (x, y) => `(${x} / nullif(${y}, 0))`,
        ),
      () => join([of('float64'), of('int')], (x, y) => `(${x} + ${y})`),
      () => join([of('float32'), of('float64')], (x, y) => `(${x} * ${y})`),
      () => join([of('decimal')], (x) => `cast(${short(x)} as double)`),
      () => join([of('decimal'), of('float64')], (x, y) => `(${short(x)} - ${y})`),
      () =>
        join(
          [of('decimal'), of('decimal')],
          (x, y) => `(${short(x)} / ${short(y)})`,
          (x, y) => `(${short(x)} / nullif(${short(y)}, 0))`,
        ),
      () => join([of('float64')], (x) => `sqrt(abs(${x}))`),
      () => join([of('text')], (x) => `try_cast(${x} as double)`),
      () => join([of('int')], (x) => `cast(${x} as double)`),
      () =>
        join(
          [of('timestamp'), of('timestamp')],
          (x, y) => `(${x} - ${y})`,
          (x, y) => `((epoch_us(${x}) - epoch_us(${y})) / 1e6)`,
        ),
    ];
  }

  #decimals(depth: number): readonly (() => Twin)[] {
    const of = (part: Kind) => this.draw(part, depth);
    const [operator, number] = [
      this.#pick(['+', '-', '*', '%']),
      this.#pick(['2', '0.9', '0.125', '-1.5', '300']),
    ];
    const whole = (x: string) => `cast(${x} as bigint)`;
    return [
      () => this.#arithmetic('decimal', depth),
      () => this.#arithmetic('decimal', depth),
      () => join([of('decimal'), of('int')], (x, y) => `(${x} ${this.#pick(['+', '-', '*'])} ${whole(y)})`),
      () => join([of('decimal')], (x) => `(${x} ${operator} ${number})`),
      () => join([of('decimal')], (x) => `(${number} ${this.#pick(['+', '-', '*'])} ${x})`),
      () => join([of('decimal')], (x) => `coalesce(${x}, ${number})`),
      () => this.#rounded('decimal', depth),
      () => join([of('decimal')], (x) => `round(${x}, ${this.#pick([1, 0, 3, -1])})`),
      () => join([of('decimal')], (x) => `(-${x})`),
      () =>
        join(
          [of(this.#pick(['text', 'float64', 'int', 'decimal', 'bool']))],
          (x) => `try_cast(${x} as decimal(${this.#pick(['9,2', '6,0', '18,4', '38,10'])}))`,
        ),
    ];
  }

  #texts(depth: number): readonly (() => Twin)[] {
    const of = (part: Kind) => this.draw(part, depth);
    return [
      () => join([of('text')], (x) => `${this.#pick(['lower', 'upper', 'trim'])}(${x})`),
      () => join([of('text'), of('text')], (x, y) => `(${x} || ${y})`),
      () => join([of('text')], (x) => `substring(${x}, ${1 + Math.floor(this.#random() * 3)}, 2)`),
      () => join([of('text'), of('text')], (x, y) => `replace(${x}, 'a', ${y})`),
      () => join([of('int')], (x) => `cast(${x} as text)`),
      () =>
        join(
          [of('text')],
          (x) => `regexpExtract(${x}, '([a-z])(.?)', 2)`,
          (x) => `regexp_extract(${x}, '([a-z])(.?)', 2)`,
        ),
      () =>
        join(
          [of('text')],
          (x) => `regexpReplace(${x}, '[a-z]', '<$0>')`,
          (x) => `regexp_replace(${x}, '[a-z]', '<\\0>', 'g')`,
        ),
      () =>
        join(
          [of('text'), of('int')],
          (x, n) => `elementAt(split(${x}, '1'), ${n} % 3)`,
          (x, n) => `string_split(${x}, '1')[(${n} % 3)::BIGINT]`,
        ),
      () =>
        join(
          [of('text')],
          (x) => `jsonText('{"a":["' || ${x} || '"]}', '$.a[0]')`,
          (x) => `json_extract_string('{"a":["' || ${x} || '"]}', '$.a[0]')`,
        ),
      () => join([of('text')], (x) => `split_part(${x}, '1', ${this.#pick([1, 2, -1])})`),
      () => join([of(this.#pick(['date', 'timestamp', 'bool']))], (x) => `cast(${x} as text)`),
      () => join([of('decimal')], (x) => `(cast(${x} as text) || ' kg')`),
      () => join([this.#zoned(depth)], (x) => `substring(cast(${x} as text), 1, 19)`),
      () =>
        join(
          [this.#list(depth), of('int')],
          (x, n) => `elementAt(${x}, ${n} % 3)`,
          (x, n) => `${x}[(${n} % 3)::BIGINT]`,
        ),
    ];
  }

  #dates(depth: number): readonly (() => Twin)[] {
    const of = (part: Kind) => this.draw(part, depth);
    return [
      () => join([of('timestamp')], (x) => `cast(${x} as date)`),
      () => join([this.#zoned(depth)], (x) => `cast(${x} as date)`),
      () => this.#truncated('date', depth),
      () => this.#added('date', depth),
    ];
  }

  #timestamps(depth: number): readonly (() => Twin)[] {
    const of = (part: Kind) => this.draw(part, depth);
    return [
      () => this.#truncated('timestamp', depth),
      () => this.#added('timestamp', depth),
      () => join([of('date')], (x) => `cast(${x} as timestamp)`),
      () => this.#truncatedIn('America/Los_Angeles', depth),
      () =>
        join(
          [this.#zoned(depth)],
          (x) => `timestamp_seconds(unix_seconds(${x}))`,
          (x) => `timezone('UTC', to_timestamp(floor(epoch(${x}))))`,
        ),
      () =>
        join(
          [of('int')],
          (x) => `timestamp_seconds(${x} % 1000)`,
          (x) => `make_timestamp((${x} % 1000)::BIGINT * 1000000)`,
        ),
    ];
  }

  #bools(depth: number): readonly (() => Twin)[] {
    const of = (part: Kind) => this.draw(part, depth);
    const operator = this.#pick(['=', '!=', '<', '<=', '>', '>=']);
    const kind = this.#pick(kinds);
    const compared = () => join([of(kind), of(kind)], (x, y) => `(${x} ${operator} ${y})`);
    return [
      compared,
      compared,
      compared,
      () =>
        join(
          [of('float32')],
          (x) => `(${x} ${operator} 3.3)`,
          (x) => `(${x} ${operator} 3.3::FLOAT)`,
        ),
      () => join([of('int'), of('float64')], (x, y) => `(${x} ${operator} ${y})`),
      () => join([of('decimal'), of('float64')], (x, y) => `(${x} ${operator} ${y})`),
      () => join([of('decimal'), of('int')], (x, y) => `(${x} ${operator} ${y})`),
      () => join([of('decimal')], (x) => `(${x} ${operator} ${this.#pick(['5', '-0.05', '12.345', '1e3'])})`),
      () => join([of('decimal')], (x) => `(${x} ${this.#pick(['in', 'not in'])} (1, 12.34, -0.050))`),
      () => join([of('decimal'), of('decimal')], (x, y) => `(${x} between -1 and ${y})`),
      () => join([of('date'), of('timestamp')], (x, y) => `(${x} ${operator} ${y})`),
      () => join([this.#zoned(depth), this.#zoned(depth)], (x, y) => `(${x} ${operator} ${y})`),
      () => join([this.#zoned(depth)], (x) => `(${x} ${operator} '2024-03-10 03:00:00')`),
      () =>
        join(
          [this.#zoned(depth), of('timestamp')],
          (x, y) => `(${x} ${operator} ${y})`,
          (x, y) => `(${x} ${operator} timezone('UTC', ${y}))`,
        ),
      () => join([of('timestamp')], (x) => `(${x} ${operator} '2024-01-01')`),
      () => same(`(${this.#wide()} ${operator} ${this.#random() < 0.3 ? '9007199254740993' : this.#wide()})`),
      () => join([of('bool'), of('bool')], (x, y) => `(${x} ${this.#pick(['and', 'or'])} ${y})`),
      () => join([of('bool')], (x) => `(not ${x})`),
      () => join([of(kind)], (x) => `(${x} is ${this.#pick(['null', 'not null'])})`),
      () =>
        join(
          [of(kind), of(kind)],
          (x, y) => `(${x} <=> ${y})`,
          (x, y) => `(${x} is not distinct from ${y})`,
        ),
      () =>
        join(
          [of('int')],
          (x) => `(${x} ${this.#pick(['in', 'not in'])} (1, 2, -3, 7${this.#pick(['', ', null'])}))`,
        ),
      () => join([of('int'), of('int'), of('int')], (x, y, z) => `(${x} between ${y} and ${z})`),
      () => join([of('float64')], (x) => `isnan(${x})`),
      () =>
        join(
          [of('text')],
          (x) => `(${x} ${this.#pick(['like', 'not like'])} '${this.#pick(['a%', '%é%', '_', '1_'])}')`,
        ),
      () =>
        join(
          [of('text')],
          (x) => `(${x} ~ '^[a-z]')`,
          (x) => `regexp_matches(${x}, '^[a-z]')`,
        ),
      () =>
        join(
          [of('text'), of('text')],
          (x, y) => `${this.#pick(['contains', 'starts_with', 'ends_with'])}(${x}, ${y})`,
        ),
    ];
  }

  #list(depth: number): Twin {
    const { list } = this.#columns;
    if (list.length > 0 && this.#random() < 0.7) return same(this.#pick(list));
    return join(
      [this.draw('text', depth)],
      (x) => `split(${x}, 'a')`,
      (x) => `string_split(${x}, 'a')`,
    );
  }

  /** Times of DuckDB's own zone: truncated, and moved by units across changes of clocks. */
  #zoned(depth: number): Twin {
    const { zoned } = this.#columns;
    const x: Twin =
      zoned.length > 0 && this.#random() < 0.7
        ? same(this.#pick(zoned))
        : join(
            [this.draw('timestamp', depth)],
            (time) => `atZone(${time}, 'America/Los_Angeles')`,
            (time) => `timezone('UTC', ${time})`,
          );
    const unit = this.#pick(unitsOf('timestamp', 'hour', 'minute'));
    const count = Math.floor(this.#random() * 30);
    return this.#pick([
      () => x,
      () =>
        join(
          [x],
          (time) => `date_trunc('${unit}', ${time})`,
          // As in `#truncated`.
          (time) => `(date_trunc('${unit}', ${time}) + interval 0 second)`,
        ),
      () => join([x], (time) => `(${time} ${this.#pick(['+', '-'])} interval '${count} ${unit}s')`),
    ])();
  }

  #wide(): string {
    const { wide } = this.#columns;
    return wide.length > 0 ? this.#pick(wide) : '9007199254740993';
  }

  #arithmetic(kind: 'int' | 'float32' | 'float64' | 'decimal', depth: number): Twin {
    const parts = [this.draw(kind, depth), this.draw(kind, depth)];
    const operator = this.#pick(['+', '-', '*', '%']);
    if (operator !== '%') return join(parts, (x, y) => `(${x} ${operator} ${y})`);
    return join(
      parts,
      (x, y) => `(${x} % ${y})`,
      (x, y) => `(${x} % nullif(${y}, 0))`,
    );
  }

  #rounded(kind: Kind, depth: number): Twin {
    const name = this.#pick(['floor', 'ceil', 'abs', 'round']);
    return join([this.draw(kind, depth)], (x) => `${name}(${x})`);
  }

  #added(kind: 'date' | 'timestamp', depth: number): Twin {
    const unit = this.#pick(unitsOf(kind, 'hour'));
    const interval = `interval '${Math.floor(this.#random() * 30)} ${unit}s'`;
    const operator = this.#pick(['+', '-']);
    const text = (x: string) => `(${x} ${operator} ${interval})`;
    return join([this.draw(kind, depth)], text, (x) => `${text(x)}::${kind}`);
  }

  /** By a unit of days: no midnight of the zone occurs twice. */
  #truncatedIn(zone: string, depth: number): Twin {
    const unit = this.#pick(unitsOf('date'));
    return join(
      [this.draw('timestamp', depth)],
      (x) => `truncate(${x}, '${unit}', '${zone}')`,
      (x) => `timezone('UTC', timezone('${zone}', date_trunc('${unit}', ${local(x, zone)})::timestamp))`,
    );
  }

  #truncated(kind: Kind, depth: number): Twin {
    const unit = this.#pick(unitsOf(kind, 'hour', 'minute'));
    const text = (x: string) => `date_trunc('${unit}', ${x})`;
    // The interval keeps DuckDB from comparing with a constant: its rule for constants treats nulls as true.
    return join([this.draw(kind, depth)], text, (x) => `(${text(x)} + interval 0 second)::${kind}`);
  }
}

/** Decimals that float64 has exactly: DuckDB rounds others twice. */
const short = (x: string, digits = '15,4') => `try_cast(${x} as decimal(${digits}))`;

/** DuckDB's time of day in a zone. */
const local = (x: string, zone: string) => `timezone('${zone}', timezone('UTC', ${x}))`;

const same = (text: string): Twin => [text, text];

/** Texts around the parts; `own` is called once, so that it may draw words. */
function join(
  parts: readonly Twin[],
  own: (...parts: string[]) => string,
  duck?: (...parts: string[]) => string,
): Twin {
  const marks = parts.map((_, index) => `§${index}§`);
  const text = own(...marks);
  const filled = (template: string, side: 0 | 1) =>
    template.replaceAll(/§(\d+)§/g, (_, index: string) => parts[Number(index)][side]);
  return [filled(text, 0), filled(duck?.(...marks) ?? text, 1)];
}

/** Units of dates, and those of times in addition. */
function unitsOf(kind: Kind, ...ofTimes: string[]): string[] {
  return ['year', 'quarter', 'month', 'week', 'day', ...(kind === 'date' ? [] : ofTimes)];
}
