import { fileFormats } from '../../connectors/files/format-names.ts';
import { choice } from './kinds.ts';

/** For inputs of commands that read ratings. */
export const formatOption = choice({ describe: 'of the ratings, where the files do not tell it', group: 'Data:', choices: fileFormats, defaultText: "by the files' endings and first bytes" });
