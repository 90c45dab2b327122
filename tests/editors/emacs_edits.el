;;; emacs_edits.el --- Edits of all kinds, which a server is told of -*- lexical-binding: t; -*-

;;; Commentary:

;; emacs --batch -l emacs_edits.el FILE COMMAND...: edits FILE by chance, always the same, and saves it now and
;; then; what it was then is kept beside it as FILE.1, FILE.2 ...

;;; Code:

(require 'midfill)

(defconst edits-pieces '("a" "\n" "x = 1\n" "😎" "é" "𠀀\r\n" "\r" "\t" "\f" "foo bar. baz" "\u2028" "\x3fff80" "\ud800" ""))

(defun edits-place ()
  "Somewhere in the buffer."
  (+ (point-min) (random (1+ (- (point-max) (point-min))))))

(defun edits-pick (list)
  "One of LIST."
  (nth (random (length list)) list))

(defun edits-region (function)
  "Call FUNCTION with some region."
  (let ((one (edits-place)) (other (edits-place)))
    (funcall function (min one other) (min (max one other) (+ 20 (min one other))))))

(defconst edits-kinds
  (list (lambda () (goto-char (edits-place)) (insert (edits-pick edits-pieces)))
        (lambda () (goto-char (edits-place)) (dotimes (_ 5) (insert (edits-pick edits-pieces))))
        (lambda () (edits-region #'delete-region))
        (lambda () (edits-region #'capitalize-region))
        (lambda () (edits-region (lambda (start end) (subst-char-in-region start end ?a ?b))))
        (lambda () (goto-char (edits-place)) (ignore-errors (transpose-lines 1)))
        (lambda () (goto-char (edits-place)) (fill-paragraph))
        (lambda () (edits-region (lambda (start end) (replace-regexp-in-region "[a-f]" "😎!" start end))))
        (lambda () (edits-region (lambda (start end) (narrow-to-region start end) (insert "n") (midfill-sync-send)
                                   (widen))))
        (lambda () (ignore-errors (undo-boundary) (undo)))
        (lambda () (edits-region (lambda (start end) (sort-lines nil start end))))
        (lambda () (let ((inhibit-modification-hooks t)) (goto-char (edits-place)) (insert "unseen")))
        (lambda () (let ((text (buffer-string)) (inhibit-modification-hooks t)) (erase-buffer) (insert text)))
        (lambda () (with-silent-modifications (put-text-property (point-min) (point-max) 'edits t)))
        (lambda () (combine-after-change-calls (goto-char (point-min)) (insert "b") (goto-char (point-max)) (insert "e")))
        (lambda () (edits-region (lambda (start end) (combine-change-calls start end (goto-char start) (insert "c"))))))
  "Ways to change a buffer.")

(defun edits-wait (condition)
  "Wait until CONDITION gives something."
  (let ((tries 6000))
    (while (not (funcall condition))
      (when (< (cl-decf tries) 0)
        (error "Never came"))
      (accept-process-output nil 0.01))))

(let* ((coding-system-for-write 'utf-8-emacs-unix)
       (file (pop command-line-args-left))
       (midfill-server-command command-line-args-left)
       (make-backup-files nil)
       (saved 0))
  (random "the same")
  (setq command-line-args-left nil)
  (find-file file)
  (buffer-enable-undo)
  (setq-local require-final-newline nil)
  (midfill-mode)
  (midfill-server-attach)
  (edits-wait (lambda () (slot-value midfill-server-own 'capabilities)))
  (midfill-server-attach)
  (dotimes (_ 60)
    (dotimes (_ (1+ (random 8)))
      (ignore-errors (funcall (edits-pick edits-kinds))) ; some do not do in some places
      (when (zerop (random 3))
        (midfill-sync-send)))
    (write-region (midfill-sync--text (point-min) (point-max)) nil (format "%s.%d" file (cl-incf saved)) nil 'quiet)
    (set-buffer-modified-p t)
    (let ((coding-system-for-write 'utf-8-emacs-unix)) (save-buffer)))
  (let (done)
    (midfill-connection-execute midfill-server-own "midfill.status" nil (lambda (_) (setq done t)))
    (edits-wait (lambda () done))))

;;; emacs_edits.el ends here
