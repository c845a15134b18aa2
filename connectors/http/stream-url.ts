import { waitForOther } from '../../engine/waits.ts';
import {
  ask,
  bodyOf,
  chunksOf,
  close,
  isUnversioned,
  lengthOf,
  placeOf,
  problemOf,
  refuse,
  TransientFailure,
  type UrlVersions,
  versionOf,
} from './request.ts';

/**
 * All bytes of a file on a web server, as they arrive; this needs no support for ranges. Retries twice before
 * the first bytes. Throws DataError that names the URL, also if fewer bytes arrive than announced; UsageError
 * for an invalid URL.
 */
export async function* streamUrl(url: string, versions?: UrlVersions): AsyncGenerator<Uint8Array> {
  const problem = problemOf(url, 'the whole file');
  const chunks = await ask(url, {}, problem, async (answer) => {
    const { response } = answer;
    if (response.status !== 200) return refuse(response, problem);
    const version = versionOf(response);
    versions?.require(url, { ...version, size: lengthOf(response) }, problem);
    const received = chunksOf(answer);
    return isUnversioned(version) ? (versions?.compared(url, received, problem) ?? received) : received;
  });
  let length = 0;
  try {
    for (;;) {
      const chunk = await waitForOther(chunks.next());
      if (chunk.done) break;
      length += chunk.value.length;
      yield chunk.value;
    }
  } catch (error) {
    if (!(error instanceof TransientFailure)) throw error;
    throw problem(`${error.message}, after ${length} bytes`, 'Check the connection and try again', error);
  } finally {
    await chunks.return(undefined);
  }
}

/** Facts about a file on a web server. */
export interface UrlHead {
  /** First bytes; fewer if the file is shorter. */
  readonly bytes: Uint8Array;
  /** Bytes of the whole file, if the server reports them. */
  readonly size: number | undefined;
  /** The content type that the server sends, in lower case and without parameters: "text/csv". */
  readonly type: string;
}

/** First bytes of a file on a web server, with its size and type. Throws as streamUrl does. */
export function headOfUrl(url: string, length: number): Promise<UrlHead> {
  const problem = problemOf(url, `the first ${length} bytes`);
  return ask(url, { Range: `bytes=0-${length - 1}` }, problem, async (answer) => {
    const { response } = answer;
    const { status, headers } = response;
    const type = (headers.get('content-type') ?? '').split(';')[0].trim().toLowerCase();
    const size = status === 200 ? lengthOf(response) : placeOf(response)?.size;
    if (size === 0) {
      await close(answer);
      return { bytes: new Uint8Array(0), size, type };
    }
    if (status !== 206 && status !== 200) return refuse(response, problem);
    const announced = headers.get('content-range') ?? 'bytes from an unknown place';
    if (status === 206 && !/^bytes 0-\d+\//.test(announced))
      throw problem(`the server sends ${announced} instead`, 'Download the file first');
    const bytes = await bodyOf(answer, { enough: length });
    return { bytes: bytes.subarray(0, length), size, type };
  });
}
