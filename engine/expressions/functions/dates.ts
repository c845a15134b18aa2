import { DAY, dateOf, dayOf, daysOf, monthOf, yearOf } from '../civil.ts';
import { isInteger, isNumber, isTime, type ValueType } from '../types.ts';
import { numbersOf, textsOf, type Values, splitTimes, timestamps } from '../values.ts';
import { type Argument, type Functions, type FunctionSpec, numberResult, type Rows } from './function.ts';

/** Parts of dates and timestamps, in UTC. Weeks begin on Monday; dayOfWeek is 1 on Sunday, as in Spark. */
export const dates: Functions = {
  year: part((days) => yearOf(dateOf(days))),
  month: part((days) => monthOf(dateOf(days))),
  day: part((days) => dayOf(dateOf(days))),
  dayOfWeek: part((days) => ((((days + 4) % 7) + 7) % 7) + 1),
  hour: part((_, micros) => Math.floor(micros / 3.6e9)),
  truncate: { takes: "(time, 'unit')", sign: truncation, kernel: truncate },
  timestampSeconds: { takes: '(seconds)', sign: seconds, kernel: fromSeconds, mayFail: true },
  unixSeconds: { takes: '(time)', sign: (args) => ofTime(args, 'int64'), kernel: toSeconds },
};

function ofTime(args: readonly Argument[], result: ValueType) {
  const [{ type }, more] = args;
  if (more !== undefined || !(isTime(type) || type === 'null')) return undefined;
  return { args: [type], result };
}

function part(of: (days: number, micros: number) => number): FunctionSpec {
  return {
    takes: '(time)',
    sign: (args) => (args.length === 0 ? undefined : ofTime(args, 'int32')),
    kernel: ([time], rows) => {
      const { days, micros } = splitTimes(time);
      return numberResult(
        rows,
        days.map((day, i) => of(day, micros[i])),
      );
    },
  };
}

/** The first day of the unit (year, quarter, ...) that contains a day. */
const firstDays: Readonly<Record<string, (day: number) => number>> = {
  year: (day) => daysOf(yearOf(dateOf(day)), 1, 1),
  quarter: (day) => {
    const date = dateOf(day);
    return daysOf(yearOf(date), Math.floor((monthOf(date) - 1) / 3) * 3 + 1, 1);
  },
  month: (day) => daysOf(yearOf(dateOf(day)), monthOf(dateOf(day)), 1),
  week: (day) => day - ((((day + 3) % 7) + 7) % 7),
  day: (day) => day,
};

const unitMicros: Readonly<Record<string, number>> = { hour: DAY / 24, minute: 60e6, second: 1e6 };

export const truncateUnits = [...Object.keys(firstDays), ...Object.keys(unitMicros)];

function truncation([time, unit, more]: readonly Argument[]) {
  const name = unit?.constant?.form === 'text' ? unit.constant.values[0].toLowerCase() : '';
  if (more !== undefined || !truncateUnits.includes(name)) return undefined;
  const own = ofTime([time], time.type);
  return own && { args: [...own.args, 'utf8' as const], result: own.result };
}

function truncate([time, unit]: readonly Values[], rows: Rows): Values {
  const name = textsOf(unit)[0].toLowerCase();
  const { days, micros } = splitTimes(time);
  const shape = { type: rows.type, length: rows.length, valid: rows.valid, constant: rows.constant };
  if (Object.hasOwn(firstDays, name)) {
    const first = days.map(firstDays[name]);
    return rows.type === 'date' ? numberResult(rows, first) : timestamps(first, undefined, shape);
  }
  if (rows.type === 'date') return time;
  const size = unitMicros[name];
  return timestamps(
    days,
    micros.map((value) => value - (value % size)),
    shape,
  );
}

function seconds([value, more]: readonly Argument[]) {
  if (value === undefined || more !== undefined) return undefined;
  if (!isNumber(value.type) && value.type !== 'null') return undefined;
  return {
    args: [isInteger(value.type) ? ('int64' as const) : ('float64' as const)],
    result: 'timestamp' as const,
  };
}

/** Fractions are rounded to microseconds; NaN becomes null. */
function fromSeconds([value]: readonly Values[], rows: Rows): Values {
  const numbers = numbersOf(value);
  const valid = numbers.some(Number.isNaN) ? (rows.valid ?? new Uint8Array(rows.length).fill(1)) : rows.valid;
  const days = new Float64Array(rows.length);
  const micros = new Float64Array(rows.length);
  for (let i = 0; i < numbers.length; i++) {
    if (valid !== undefined && valid[i] === 0) continue;
    if (Number.isNaN(numbers[i]) && valid) valid[i] = 0;
    else if (Math.abs(numbers[i]) > 9.2e12) rows.fail(i, `${numbers[i]} seconds are beyond timestamps`);
    else {
      days[i] = Math.floor(numbers[i] / 86_400);
      micros[i] = Math.round((numbers[i] - days[i] * 86_400) * 1e6);
    }
  }
  return timestamps(days, micros, { type: rows.type, length: rows.length, valid, constant: rows.constant });
}

function toSeconds([time]: readonly Values[], rows: Rows): Values {
  const { days, micros } = splitTimes(time);
  return numberResult(
    rows,
    days.map((day, i) => day * 86_400 + Math.floor(micros[i] / 1e6)),
  );
}
