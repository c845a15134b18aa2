import { choices } from '../../api/check-objects.ts';
import { choice, listOf, text, toggle } from './kinds.ts';
import { machineOptions, parquetBackendOption } from './machine-options.ts';
import { grouped } from './option.ts';

/** Flags of every command. */
export const commonOptions = {
  ...grouped('Output:', {
    json: toggle('print the result as one JSON object on one line of stdout'),
    quiet: toggle(
      'print only results, errors and warnings: no progress, and no summary of files that were copied',
    ),
  }),
};

/** For commands that run long. */
export const profileOption = toggle(
  'print the time of the whole command by phase, with busy cores and bytes moved',
  { group: 'Output:' },
);

/** For commands with a report page. */
export const reportOption = text(
  'HTML page to write, with charts of what the command did; an earlier report there is replaced',
  { group: 'Output:' },
);

/** For commands with --profile. */
export const traceOption = text(
  'write a trace of reads, transfers, kernels and saves, a timeline for each device, for Perfetto or chrome://tracing; replaces an earlier trace',
  { group: 'Output:' },
);

export const forceOption = toggle('replace an output that exists', { group: 'Output:' });

export const toOption = choice('format of the output', {
  group: 'Output:',
  choices: choices.formats,
  defaultText: "by the output's ending",
});

export const partitionByOption = listOf(
  'columns whose values name folders of the output, such as genre=Drama/year=1999, separated by commas',
  { group: 'Output:' },
);

export const escapeFormulasOption = toggle(
  "in CSV and other text, write a quote (') before texts that a spreadsheet may run: = + - @, tab or CR first",
  { group: 'Output:' },
);

export const codecOption = choice('compression inside a Parquet output, or an Arrow one (lz4 or zstd)', {
  group: 'Output:',
  choices: choices.codecs,
  defaultText: 'zstd; Arrow: uncompressed',
});

/** The last options of all commands that write rows. */
const outputOptions = {
  parquetBackend: parquetBackendOption,
  codec: codecOption,
  force: forceOption,
  profile: profileOption,
  trace: traceOption,
  ...commonOptions,
};

/** The options of commands that use a model and write rows. */
export const writingOptions = { to: toOption, ...machineOptions, ...outputOptions };

/** The options of commands that copy rows: on the CPU, with the same bytes for any number of threads. */
export const copyingOptions = {
  to: toOption,
  workers: { ...machineOptions.workers, describe: 'CPU threads; any number gives the same bytes' },
  escapeFormulas: escapeFormulasOption,
  ...outputOptions,
};
