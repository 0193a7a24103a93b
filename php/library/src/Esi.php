<?php

declare(strict_types=1);

namespace Mayfly;

/**
 * Tags of ESI, by which a page includes fragments that live differently
 * (https://www.w3.org/TR/esi-lang/, section 3.1).
 */
final class Esi
{
    /** The response field that asks for ESI, and its value. */
    public const FIELD = 'Surrogate-Control';
    public const VALUE = 'content="ESI/1.0"';

    /**
     * @param string      $src     the fragment's URL
     * @param string|null $alt     asked for if the fragment fails
     * @param bool        $isEmpty whether a fragment that fails is left out; otherwise the page fails
     */
    public static function include(string $src, ?string $alt = null, bool $isEmpty = true): string
    {
        $attributes = ['src' => $src, 'alt' => $alt, 'onerror' => $isEmpty ? 'continue' : null];
        $tag = '<esi:include';
        foreach ($attributes as $name => $value) {
            if ($value !== null) {
                $tag .= sprintf(' %s="%s"', $name, htmlspecialchars($value, \ENT_QUOTES | \ENT_XML1, 'UTF-8'));
            }
        }

        return "$tag/>";
    }

    private function __construct()
    {
    }
}
