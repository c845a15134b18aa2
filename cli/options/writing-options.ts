import { machineOptions, parquetBackendOption } from './machine-options.ts';
import {
  codecOption,
  commonOptions,
  escapeFormulasOption,
  forceOption,
  profileOption,
  toOption,
  traceOption,
} from './output-options.ts';

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
