;;; midfill-ghost.el --- Draws suggestions -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Draws what is still to come of a suggestion, in the selected window.
;; Must not know where suggestions come from.

;;; Code:

(require 'cl-lib)
(require 'midfill-edit)

(defface midfill-suggestion
  '((t :inherit shadow))
  "Face of a suggestion."
  :group 'midfill)

(defface midfill-count
  '((t :inherit shadow :slant italic))
  "Face of the number of a suggestion, where there are several."
  :group 'midfill)

(defvar midfill-ghost--overlays nil
  "What is drawn: there is one suggestion at most.")

(defun midfill-ghost-clear ()
  "Take away what is drawn."
  (mapc #'delete-overlay midfill-ghost--overlays)
  (setq midfill-ghost--overlays nil))

(defun midfill-ghost--put (start stop property text)
  "Draw TEXT at or, as PROPERTY says, in place of START to STOP."
  (unless (equal text "")
    (let ((overlay (make-overlay start stop)))
      (overlay-put overlay property text)
      (overlay-put overlay 'window (selected-window))
      (overlay-put overlay 'priority 100)
      (push overlay midfill-ghost--overlays))))

(defun midfill-ghost--text (place text)
  "Draw TEXT at PLACE.  If that is point, the cursor stays before it."
  (when (and (= place (point)) (not (equal text "")))
    (when (string-prefix-p "\n" text) ; a line end cannot bear the cursor
      (setq text (concat (propertize " " 'face 'midfill-suggestion) text)))
    (put-text-property 0 1 'cursor 1 text)) ; t would not do where text follows
  (midfill-ghost--put place place 'after-string text))

(defun midfill-ghost--over (start stop text)
  "Draw the beginning of TEXT over START to STOP, in as many cells.
Return the rest of it."
  (let* ((cells (save-excursion (- (progn (goto-char stop) (current-column))
                                   (progn (goto-char start) (current-column)))))
         (size (or (string-search "\n" text) (length text)))
         (taken (min size (length (truncate-string-to-width text cells)))))
    (midfill-ghost--put start stop 'display
                        (concat (substring text 0 taken)
                                (make-string (max 0 (- cells (string-width (substring text 0 taken)))) ?\s)))
    (substring text taken)))

(defun midfill-ghost--pieces (view ghost)
  "What of GHOST, the text of VIEW, stands where: a list of (PLACE . TEXT).
It is around the characters that stay."
  (let ((at 0) (place (point)) pieces)
    (pcase-dolist (`(,end . ,passed) (midfill-view-kept view))
      (push (cons place (substring ghost at (1- end))) pieces)
      (setq at end place (+ (point) passed)))
    (nreverse (cons (cons place (substring ghost at)) pieces))))

(defun midfill-ghost-draw (view count)
  "Draw VIEW, and COUNT, such as \"(2/3)\" or nil, at the end of the line."
  (midfill-ghost-clear)
  (let* ((ghost (propertize (midfill-view-ghost view) 'face 'midfill-suggestion))
         (count (if count (propertize (concat " " count) 'face 'midfill-count) ""))
         (from (midfill-view-from view))
         (stop (midfill-view-stop view))
         (eol (save-excursion (goto-char stop) (let ((inhibit-field-text-motion t)) (line-end-position)))))
    (pcase-dolist (`(,place . ,text)
                   (if (and (listp (midfill-view-kept view)) (equal (midfill-view-cut view) ""))
                       (midfill-ghost--pieces view ghost)
                     (when (< from (point))
                       (setq ghost (midfill-ghost--over from (point) ghost)))
                     (when (< (point) stop)
                       (setq ghost (midfill-ghost--over (point) stop ghost)))
                     (list (cons stop ghost))))
      (when (= place eol)
        (setq text (concat text count) count ""))
      (midfill-ghost--text place text))
    (midfill-ghost--put eol eol 'after-string count)))

(provide 'midfill-ghost)
;;; midfill-ghost.el ends here
