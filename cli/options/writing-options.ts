import { machineOptions, parquetBackendOption } from './machine-options.ts';
import { codecOption, commonOptions, forceOption, profileOption, toOption, traceOption } from './output-options.ts';

/** The options of commands that use a model and write rows. */
export const writingOptions = {
  to: toOption,
  ...machineOptions,
  parquetBackend: parquetBackendOption,
  codec: codecOption,
  force: forceOption,
  profile: profileOption,
  trace: traceOption,
  ...commonOptions,
};
