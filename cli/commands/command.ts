import type { ExitCode } from '../../engine/errors.ts';
import type { EventSink } from '../../index.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { Options, Values } from '../options/option.ts';
import type { commonOptions } from '../options/output-options.ts';
import { type RawValues, readValues } from '../options/read-values.ts';

/** A word of the command line without a flag in front of it. */
export interface Positional {
  readonly name: string;
  readonly describe: string;
  readonly required: boolean;
  /** One or more, the last of the line. */
  readonly many?: boolean;
}

/** What a command gets beside its flags. */
export interface CommandContext {
  /** Fires at the first Ctrl-C. */
  readonly signal: AbortSignal;
  readonly onEvent: EventSink;
  /** How many units a phase will have when its events can't know: makes a bar of a counter. */
  expect(phase: string, total: number): void;
}

/** What a command has to say. Commands never print: the caller prints `text`, or `json` with --json. */
export interface CommandResult {
  readonly json: JsonObject;
  readonly text: string;
  /** Where what was found is bad news: 0 without it. */
  readonly exitCode?: ExitCode;
}

export interface CommandInput<O extends Options> {
  readonly values: Values<O>;
  readonly positionals: Readonly<Record<string, readonly string[]>>;
  /** Flags that were really given, on the command line or in the configuration. */
  readonly given: ReadonlySet<keyof O>;
}

export interface CommandSpec<O extends Options> {
  readonly summary: string;
  readonly positionals: readonly Positional[];
  readonly options: O;
  /** Command lines without the program's name, each with what it does. */
  readonly examples: readonly (readonly [line: string, meaning: string])[];
  /** More for the end of --help. */
  readonly epilog?: string;
  readonly run: (input: CommandInput<O>, context: CommandContext) => Promise<CommandResult>;
}

/** A command line that was read and checked, ready to run. */
export interface PreparedCommand {
  readonly json: boolean;
  readonly quiet: boolean;
  readonly run: (context: CommandContext) => Promise<CommandResult>;
}

/** A command whose flags' types nobody outside needs to know. */
export interface Command extends Omit<CommandSpec<Options>, 'run'> {
  /** Reads and checks the flags; throws UsageError. */
  readonly prepare: (raw: RawValues) => PreparedCommand;
}

export function defineCommand<O extends Options & typeof commonOptions>({ run, ...description }: CommandSpec<O>): Command {
  return {
    ...description,
    prepare: (raw) => {
      const { values, given } = readValues(description.options, raw);
      const { json, quiet } = values as Values<typeof commonOptions>;
      return { json, quiet, run: (context) => run({ values, given, positionals: raw.positionals }, context) };
    },
  };
}
