import type { ExitCode } from '../../engine/errors.ts';
import type { EventSink, JsonObject, Profile } from '../../index.ts';
import { flagName, type Options, type Values } from '../options/option.ts';
import type { commonOptions } from '../options/output-options.ts';
import { type RawValues, readValues } from '../options/read-values.ts';
import type { CommandFiles, NamedPath } from '../output/check-collisions.ts';
import type { Report } from '../page/page.ts';

/** A word of the command line that is not a flag. */
export interface Positional {
  readonly name: string;
  readonly describe: string;
  readonly required: boolean;
  /** Possible values, for completion in shells. */
  readonly choices?: readonly string[];
  /** Takes one or more words; only for the last positional. */
  readonly many?: boolean;
  /** The last of its words is the output. */
  readonly lastIsOutput?: boolean;
}

export const modelFolder: Positional = { name: 'model', describe: 'folder of a model', required: true };

export const inputFiles = 'files (Parquet, CSV, TSV, "::", NDJSON, Arrow), folders of them or quoted globs';

/** One or more words, the last positional of a command. */
export function words(name: string, describe: string, more: Partial<Positional> = {}): Positional {
  return { name, describe, required: true, many: true, ...more };
}

/** Context that the caller provides to a command. */
export interface CommandContext {
  /** Fires at the first Ctrl-C. */
  readonly signal: AbortSignal;
  readonly onEvent: EventSink;
  /** Set with --profile or --trace: measures the command. */
  readonly profile?: Profile;
  /**
   * Announces the number of units of a phase whose events have no total, so that its counter becomes a bar.
   */
  expect(phase: string, total: number): void;
  /**
   * Calls the handler at each SIGHUP, which otherwise ends a command. Absent if the caller forwards no
   * signals.
   */
  readonly onHangup?: ((handler: () => void) => void) | undefined;
}

/** The result of a command. Commands never print: the caller prints `text`, or `json` with --json. */
export interface CommandResult {
  readonly json: JsonObject;
  readonly text: string;
  /** True if the text only describes what was written to files, so that --quiet leaves it out. */
  readonly isSummary?: boolean;
  /** Exit code of a run that found a fault; default 0. */
  readonly exitCode?: ExitCode;
  /** The page of --report, without the parts that all pages have. */
  readonly report?: Report | undefined;
}

export interface CommandInput<O extends Options> {
  readonly values: Values<O>;
  readonly positionals: Readonly<Record<string, readonly string[]>>;
  /** Flags given on the command line or in the configuration. */
  readonly given: ReadonlySet<keyof O>;
}

export interface CommandSpec<O extends Options> {
  readonly summary: string;
  readonly positionals: readonly Positional[];
  readonly options: O;
  /** Command lines without the program's name, each with an explanation. */
  readonly examples: readonly (readonly [line: string, meaning: string])[];
  /** Last paragraph of --help. */
  readonly epilog?: string;
  readonly run: (input: CommandInput<O>, context: CommandContext) => Promise<CommandResult>;
}

/** A command line, read and checked, ready to run. */
export interface PreparedCommand {
  readonly json: boolean;
  readonly quiet: boolean;
  /** True if rows are written to stdout (output "-"). */
  readonly rowsOnStdout: boolean;
  /** True with --profile. */
  readonly profile: boolean;
  /** The file of --report. */
  readonly report: string | undefined;
  /** The file of --trace. */
  readonly trace: string | undefined;
  readonly files: CommandFiles;
  readonly run: (context: CommandContext) => Promise<CommandResult>;
}

/** A command, independent of the types of its flags. */
export interface Command extends Omit<CommandSpec<Options>, 'run'> {
  /** Reads and checks the flags; throws UsageError. */
  readonly prepare: (raw: RawValues) => PreparedCommand;
}

/** Flags with paths that commands read and write. */
const inputFlags = [
  'test',
  'validation',
  'initModel',
  'exclude',
  'candidates',
  'itemNames',
  'items',
  'itemAttributes',
  'userAttributes',
] as const;
const resultFlags = ['modelDir', 'output', 'testOutput'] as const;
const otherFlags = ['checkpointDir', 'trialsFile', 'report', 'trace'] as const;

/** Creates a command. One without the flags json and quiet prints by itself. */
export function defineCommand<O extends Options>({ run, ...description }: CommandSpec<O>): Command {
  return {
    ...description,
    prepare: (raw) => {
      const { values, given } = readValues(description.options, raw);
      const {
        json = false,
        quiet = true,
        profile = false,
        trace,
        report,
      } = values as Partial<Values<typeof commonOptions>> & {
        readonly profile?: boolean;
        readonly trace?: string;
        readonly report?: string;
      };
      const named = (flags: readonly string[]) =>
        flags.flatMap((key): NamedPath[] => {
          const path: unknown = values[key];
          return typeof path === 'string'
            ? [{ name: `--${flagName(key)}`, path, isShared: key === 'checkpointDir' }]
            : [];
        });
      const words = description.positionals.flatMap(({ name, lastIsOutput = false }) =>
        (raw.positionals[name] ?? []).map((path, at, { length }) => ({
          path,
          isOutput: lastIsOutput && at > 0 && at === length - 1,
        })),
      );
      const files: CommandFiles = {
        inputs: [...words.filter(({ isOutput }) => !isOutput), ...named(inputFlags)],
        results: [
          ...words.filter(({ isOutput }) => isOutput).map(({ path }) => ({ name: 'the output', path })),
          ...named(resultFlags),
        ],
        others: named(otherFlags),
      };
      return {
        json,
        quiet,
        rowsOnStdout: files.results.some(({ path }) => path === '-'),
        profile,
        trace,
        report,
        files,
        run: (context) => run({ values, given, positionals: raw.positionals }, context),
      };
    },
  };
}
