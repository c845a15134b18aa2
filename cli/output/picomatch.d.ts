/** The part of picomatch that is used; the package does not contain types. */
declare module 'picomatch' {
  export default function picomatch(pattern: string): (path: string) => boolean;
}
